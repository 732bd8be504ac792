"""DeepSpeed's AutoTP where it cannot train."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, json_hit, only
from advisor.memory.tensor_parallel import is_plain

SINCE = "0.18.9"
"""DeepSpeed; which layers earlier ones divide is not known here."""
SECTION = "tensor_parallel"


def finds(run: Run) -> Iterator[Hit]:
    """The first place at which such a run stops."""
    if run.autotp_size <= 1 or run.tensor_parallel_size > 1 or not run.stack.at_least("deepspeed", SINCE):
        return
    reason = stops(run)
    if reason:
        steps = "then divide `gradient_accumulation_steps` by it to keep the global batch"
        message = f"`autotp_size: {run.autotp_size}` {reason}; remove `{SECTION}`, {steps}"
        yield json_hit(run, f"{SECTION}.autotp_size", message)


def stops(run: Run) -> str:
    """Why it does, or nothing."""
    size = run.autotp_size
    if run.zero_stage == 3:
        return "with ZeRO-3: DeepSpeed stops, it divides layers up to stage 2 alone"
    if run.adapter is not None:
        return "with adapters: DeepSpeed replaces the layers that have them, and the run stops"
    if run.hardware is not None and run.world_size % size:
        return f"on {run.world_size} GPUs, which do not make up groups of {size}: torch stops"
    if heads := undivided(run):
        return f"with {heads} key-value heads, which it would cut apart: the first forward pass stops"
    return ""


def undivided(run: Run) -> int:
    """Heads of keys of some layer, if they do not divide evenly; else none."""
    if run.model is None or not is_plain(run.model):
        return 0
    mixers = [block.attention for block in run.model.blocks]
    heads = [mixer.key_width // mixer.head_dim for mixer in mixers if mixer is not None]
    return next((number for number in heads if number % run.autotp_size), 0)


rule = Rule(
    id="autotp-stops",
    stage="lint",
    title="DeepSpeed's AutoTP where it cannot train",
    finds=finds,
    level="error",
    proof="read",
    why="""
        AutoTP puts layers of its own, each with a piece of the weights, where linear layers were. It asserts that
        ZeRO's stage is at most 2, asks torch for groups of `autotp_size` GPUs, and leaves heads whole only where their
        number divides. An adapter goes with the layer that it stood on, or is cut itself: the optimizer then has
        weights that the model no longer has, or the first product has shapes that do not match.
    """,
    cost="Each GPU then reads rows of its own: fewer accumulation steps make the same global batch.",
    safe=False,
    source=(
        "deepspeed/runtime/engine.py:515-516,570-647, module_inject/auto_tp.py:351-405@0.18.9; "
        "accelerate/accelerator.py:2135-2153@1.13.0; tests/oracles/test_autotp.py"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: ds.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 3}, "tensor_parallel": {"autotp_size": 2}}',
            fires=True,
        ),
        but(deepspeed='{"zero_optimization": {"stage": 2}, "tensor_parallel": {"autotp_size": 2}}'),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_target_modules: [q_proj, v_proj]",
            deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 2}}',
            fires=True,
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_target_modules: [q_proj, v_proj]",
            deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 1}}',
        ),
        but(
            gpus="3x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 2}}',
            fires=True,
        ),
        but(gpus="", deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 2}}'),
        but(
            "base_model: Qwen/Qwen2.5-7B",
            deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 8}}',
            fires=True,
        ),
        but(
            "base_model: nobody/knows-this",
            deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 8}}',
        ),
        but(
            "base_model: microsoft/Phi-3-medium-4k-instruct",
            deepspeed='{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 4}}',
        ),
        but("tensor_parallel_size: 2"),
        but(stack={"deepspeed": "0.17.0"}),
    ),
)
