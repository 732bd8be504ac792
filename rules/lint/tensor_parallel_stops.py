"""Tensor parallelism that the pinned transformers, accelerate and torch cannot train with."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only

SINCE = "5.16.1"
"""transformers; how earlier ones did is not known here."""
ROW_WISE = frozenset({"o_proj", "down_proj"})
FUSED = frozenset({"adamw_torch_fused", "adamw_torch_8bit", "adamw_torch_4bit"})


def finds(run: Run) -> Iterator[Hit]:
    """The first place at which such a run stops or goes wrong."""
    size = run.tensor_parallel_size
    if size <= 1 or not run.stack.at_least("transformers", SINCE):
        return
    said = f"`tensor_parallel_size: {size}`"
    edits = instead(run)
    if run.hardware is not None and run.world_size != size:
        message = f"{said} on {run.world_size} GPUs: transformers stops at loading, its plan is of all ranks; shard"
        yield Hit("tensor_parallel_size", f"{message} the model by FSDP2 instead", edits)
    elif run.fsdp is not None and run.fsdp.version == 2:
        message = f"{said} with FSDP2: accelerate imports what transformers {SINCE} no longer has, and stops; remove it"
        yield Hit("tensor_parallel_size", message, edits)
    elif run.zero is not None:
        message = f"{said} with DeepSpeed: transformers has cut the layers that DeepSpeed broadcasts, and torch stops"
        yield Hit("tensor_parallel_size", f"{message}; remove it, or move it to the JSON as `autotp_size`", edits)
    elif run.lora is not None:
        if run.lora.target_linear or ROW_WISE & {name.rpartition(".")[2] for name in run.lora.targets}:
            message = f"{said} with adapters on `o_proj` or `down_proj`: their sums over ranks are left out, so that"
            yield Hit("tensor_parallel_size", f"{message} each rank trains another model; remove it", edits)
    elif run.sharding is None:
        yield from full(run, said, edits)


def full(run: Run, said: str, edits: tuple[Change, ...]) -> Iterator[Hit]:
    """Where every weight is trained, some are cut and some are whole."""
    if run.config.get("max_grad_norm", 1.0):
        message = f"{said} with clipped gradients: torch stops where cut and whole ones meet; remove it"
        yield Hit("tensor_parallel_size", message, edits)
    elif run.optimizer in FUSED:
        message = f"{said} with `optimizer: {run.optimizer}`: its fused step stops where cut and whole weights meet"
        yield Hit("tensor_parallel_size", f"{message}; remove it", edits)


def instead(run: Run) -> tuple[Change, ...]:
    """Shards in its place, where FSDP2 is there, at the same global batch, where that can be."""
    steps, rest = divmod(run.gradient_accumulation_steps, run.tensor_parallel_size)
    if rest or run.config.get("batch_size"):
        return ()
    removed = (Remove("tensor_parallel_size"), Set("gradient_accumulation_steps", steps))
    return (*removed, Set("dp_shard_size", run.world_size)) if run.fsdp is not None and run.dp_shard_size else removed


rule = Rule(
    id="tensor-parallel-stops",
    stage="lint",
    title="Shard the model instead of cutting its layers",
    finds=finds,
    level="error",
    proof="read",
    why="""
        Under axolotl 0.19.0's pins transformers cuts a model over all ranks or not at all, and torch neither clips nor
        steps where cut weights meet whole ones. With FSDP2 accelerate fails on an import. Adapters on layers that are
        cut along their inputs train without a sign of what is wrong: the sums over ranks are missing, and after one
        layer the ranks' hidden states differ. DeepSpeed stops as it sends each weight from one rank to the others, or
        at ZeRO-3 sooner.
    """,
    cost="Each GPU then reads rows of its own, so there are fewer accumulation steps; without sharding it needs more.",
    safe=True,
    source=(
        "transformers/distributed/mixin.py:157-164@5.16.1; accelerate/accelerator.py:1616@1.13.0; "
        "axolotl/loaders/model.py:972-977@0.19.0; deepspeed/runtime/engine.py:515-516@0.18.9; "
        "tests/oracles/test_tensor_parallel.py, tests/oracles/test_autotp.py"
    ),
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_accumulation_steps: 4
                tensor_parallel_size: 2
                dp_shard_size: 4
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_accumulation_steps: 2
                dp_shard_size: 8
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        but(without=("gradient_accumulation_steps", "dp_shard_size"), gpus="2x h100-80gb", fires=True),
        Example(
            gpus="2x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_accumulation_steps: 2
                tensor_parallel_size: 2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_accumulation_steps: 1
            """,
        ),
        but("max_grad_norm: 0", without=("gradient_accumulation_steps",), fires=True),
        but("max_grad_norm: 0", "optimizer: adamw_torch", without=("gradient_accumulation_steps",)),
        but(
            "deepspeed: ds.json",
            without=("gradient_accumulation_steps",),
            deepspeed='{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}',
            fires=True,
        ),
        but(
            "deepspeed: ds.json",
            without=("gradient_accumulation_steps",),
            deepspeed='{"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}',
            fires=True,
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_target_linear: true",
            without=("gradient_accumulation_steps",),
            fires=True,
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_target_modules: [q_proj, self_attn.o_proj]",
            without=("gradient_accumulation_steps",),
            fires=True,
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_target_modules: [q_proj, v_proj]",
            without=("gradient_accumulation_steps",),
        ),
        but(without=("gradient_accumulation_steps",), stack={"transformers": "4.57.1"}),
        but("tensor_parallel_size: 1", without=("gradient_accumulation_steps",)),
        but("max_grad_norm: 0", "optimizer: adamw_torch", without=("gradient_accumulation_steps",), gpus=""),
        but(
            "fsdp_version: 1",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("gradient_accumulation_steps",),
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "batch_size: 16",
            "tensor_parallel_size: 8",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="",
            fires=True,
        ),
    ),
)
