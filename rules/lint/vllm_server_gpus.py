"""A vLLM server that makes GRPO's answers, and the GPUs that it needs."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where the server is asked for on this host, or on a host of its own."""
    made = run.rollouts
    if made is None or made.engine != "server":
        return
    at = "trl.vllm_mode" if run.config.at("trl.vllm_mode") else "trl.use_vllm"
    cards = "1 GPU" if made.server_gpus == 1 else f"{made.server_gpus} GPUs"
    if not made.server_here:
        yield Hit(at, f"the vLLM server on `{made.server_host}` needs {cards} there; start it before the training")
        return
    here = run.hardware.installed if run.hardware is not None else None
    if here is not None and here <= made.server_gpus:
        message = f"the vLLM server needs {cards} of its own, and this host has {here}, so none is left to train on"
        yield Hit(at, f"{message}; write `vllm_mode: colocate`, or name another `vllm_server_host`", level="error")
        return
    training = f" next to the {run.world_size} that train" if run.hardware is not None else ""
    message = f"the vLLM server needs {cards} of this host{training}"
    left = made.left_to_train(run.hardware.gpus_per_node) if run.hardware is not None else None
    if run.hardware is not None and left is not None:
        less = f"{left}x {run.hardware.gpu.id}"
        all_ = run.hardware.gpus_per_node
        yield Hit(at, f'{message}; if the host has {all_} in all, {left} train: `--gpus "{less}"`', level="warning")
        return
    yield Hit(at, f"{message}; start it with `axolotl vllm-serve`")


rule = Rule(
    id="vllm-server-gpus",
    stage="lint",
    title="A vLLM server needs GPUs of its own",
    finds=finds,
    level="note",
    proof="read",
    why="""
        Without `vllm_mode` axolotl writes `server`: another process makes the answers, on GPUs that do not train, and
        stops where they are the same. axolotl neither starts it nor counts its GPUs: `tensor_parallel_size` times
        `data_parallel_size` under `vllm`. The GPUs that are checked are those that train, as the launcher has them.
    """,
    source=(
        "axolotl/utils/schemas/validation.py:2060-2067, cli/vllm_serve.py:67-78@0.19.0; "
        "trl/scripts/vllm_serve.py:88-93@1.9.0"
    ),
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "rl: grpo",
            "trl:\n  use_vllm: true",
            "vllm:\n  tensor_parallel_size: 2",
            gpus="6x a100-80gb",
            fires=True,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                rl: grpo
                trl:
                  use_vllm: true
                  vllm_mode: server
                  vllm_server_host: vllm.example.org
            """,
            fires=True,
        ),
        but("trl:\n  use_vllm: true\n  vllm_mode: colocate"),
        but("trl:\n  vllm_mode: server"),
        but("trl:\n  use_vllm: true", without=("rl",)),
    ),
)
