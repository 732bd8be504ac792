"""A full fine-tune in fp16."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, gib
from advisor.memory import estimate
from advisor.run.build import edited

WITH_MASTERS = "deepspeed_configs/zero1.json"


def finds(run: Run) -> Iterator[Hit]:
    """Where weights that are themselves in fp16 would be trained under a gradient scaler."""
    if run.adapter is not None or run.precision != "fp16" or not run.is_on("fp16") or run.unfrozen_parameters:
        return
    if run.zero is not None or run.fsdp_upcasts or not unscales(run):
        return
    able = run.hardware is None or run.hardware.gpu.bf16
    remedy = "write `bf16: true`" if able else with_masters(run)
    stop = 'the first step stops with "Attempting to unscale FP16 gradients"'
    yield Hit("fp16", f"`fp16: true` without an adapter loads the weights in fp16: {stop}; {remedy}", edits(able, run))


def with_masters(run: Run) -> str:
    """DeepSpeed's fp32 masters, with what they need on one GPU; else an adapter."""
    otherwise = "train an adapter; or write `fp16: false` and `bf16: false`"
    if not run.takes_deepspeed:
        return otherwise
    found = estimate(edited(run, {"zero_stage": 1}, rule.id))
    figures = f" and needs {gib(found.needed.high)} of {gib(found.usable)}" if found is not None else ""
    return f"add `deepspeed: {WITH_MASTERS}`, which keeps fp32 masters{figures}; or {otherwise}"


def unscales(run: Run) -> bool:
    """Whether the scaler meets the gradients: torch's fused AdamW alone unscales for itself, if nothing is clipped."""
    return run.optimizer != "adamw_torch_fused" or run.config.get("max_grad_norm") not in (0, 0.0)


def edits(able: bool, run: Run) -> tuple[Change, ...]:
    """bf16 where the card has it."""
    stale = tuple(Remove(key) for key in ("fp16", "float16") if run.config.has(key))
    return (Set("bf16", True, after="fp16"), *stale) if able else ()


rule = Rule(
    id="fp16-full-finetune",
    stage="lint",
    title="A full fine-tune whose weights are in fp16",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl loads the model in the dtype that it computes in. Their gradients are then in fp16 too, and torch's
        GradScaler refuses to unscale those: it is made for fp32 weights. Adapters are in fp32; DeepSpeed and FSDP1 keep
        fp32 weights of their own.
    """,
    cost="bf16 has 8 bits of mantissa instead of 11.",
    safe=False,
    source=(
        "torch/amp/grad_scaler.py:274-275@2.13.0; axolotl/utils/config/__init__.py:198-203@0.19.0; "
        "transformers/trainer.py:1789,2545-2548@5.16.1; https://github.com/axolotl-ai-cloud/axolotl/issues/1031"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: false
                fp16: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: true
            """,
        ),
        but(without=("bf16",), gpus="1x v100-32gb", fires=True),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            without=("bf16",),
            gpus="1x v100-32gb",
        ),
        but("deepspeed: deepspeed_configs/zero1.json", without=("bf16",), gpus="8x v100-32gb"),
        but(without=("bf16",), gpus="", fires=True),
        but("optimizer: muon", without=("bf16",), gpus="1x v100-32gb", fires=True),
        but("unfrozen_parameters:\n  - model.layers.31", without=("bf16",), gpus="1x a100-80gb"),
        but("bf16: true", gpus="1x a100-80gb"),
        but("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("bf16",), gpus="1x a100-80gb"),
        but("max_grad_norm: false", without=("bf16",), gpus="1x a100-80gb"),
        but("max_grad_norm: false", "optimizer: adamw_torch", without=("bf16",), gpus="1x a100-80gb", fires=True),
        but("float16: true", without=("fp16",), gpus="1x a100-80gb"),
    ),
)
