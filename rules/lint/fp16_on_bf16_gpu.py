"""fp16 where the card has bf16."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where fp16 is asked for and would work; what it does to a full fine-tune is a rule of its own."""
    if run.hardware is None or not run.hardware.gpu.bf16 or run.precision != "fp16" or not run.is_on("fp16"):
        return
    if run.adapter is None and run.zero is None and not run.fsdp_upcasts:
        return
    gain = "as fast, and needs no loss scaling; what was trained in bf16 can overflow in fp16"
    message = f"`fp16: true` on {run.hardware.gpu.title}: bf16 is {gain}; write `bf16: true`"
    fixed_by_json = run.deepspeed is not None and run.deepspeed.at("fp16.enabled") not in (None, "auto")
    yield Hit("fp16", message, () if fixed_by_json else edits(run))


def edits(run: Run) -> tuple[Change, ...]:
    """bf16 instead."""
    stale = tuple(Remove(key) for key in ("fp16", "float16") if run.config.has(key))
    return (Set("bf16", True, after="fp16"), *stale)


rule = Rule(
    id="fp16-on-bf16-gpu",
    stage="lint",
    title="fp16 where the card has bf16",
    finds=finds,
    level="note",
    proof="read",
    why="""
        bf16 has the range of fp32, fp16 ends at 65,504. So fp16 needs a loss scale, skips steps until it has found one
        that does not overflow, and keeps to it at the price of small gradients. Both are of one size and one speed.
    """,
    cost="8 bits of mantissa instead of 11.",
    safe=False,
    source="https://arxiv.org/abs/1905.12322; accelerate/accelerator.py:563-591@1.13.0",
    examples=lambda: (
        Example(
            gpus="1x rtx-3090",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: false
                fp16: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: true
            """,
        ),
        but(without=("bf16",), gpus="1x t4"),
        only("base_model: Qwen/Qwen2.5-1.5B", gpus=""),
        but("bf16: true", gpus="1x a100-80gb"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "fp16: true",
            "fsdp_version: 1",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="8x a100-80gb",
            fires=True,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: false
                float16: true
            """,
        ),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                fp16: true
                deepspeed: zero.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 1}, "fp16": {"enabled": "auto"}}
            """,
        ),
    ),
)
