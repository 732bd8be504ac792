"""ZeRO that needs more memory than plain data parallelism."""

from collections.abc import Iterator

from advisor import Estimate, Example, Hit, Remove, Rule, Run, but, gib, only
from advisor.memory import estimate
from advisor.run import Zero
from advisor.run.build import edited, with_config

WITHOUT = Remove("deepspeed")
BUCKET = 50_000_000
NOTICEABLE = 0.05


def finds(run: Run) -> Iterator[Hit]:
    """Where the same run fits without ZeRO and needs clearly less, even if ZeRO's buckets were small."""
    zero = run.zero
    if zero is None or run.world_size == 1 or run.tensor_parallel_size > 1 or zero.stage == 0:
        return
    if zero.offload_params != "gpu":
        return
    found, plain = estimate(run), estimate(with_config(run, [WITHOUT]))
    if found is None or plain is None or plain.verdict == "does-not-fit" or not less(plain, sized(run, zero, found)):
        return
    why = "its fp32 master weights" if run.adapter is None else "its buffers"
    message = (
        f"ZeRO-{zero.stage} needs {gib(found.needed.low)} a GPU, plain data parallelism {gib(plain.needed.low)}: "
        f"{why} outweigh what {run.world_size} GPUs share; remove `deepspeed`"
    )
    rescues = plain.verdict == "fits" and found.verdict != "fits"
    yield Hit("deepspeed", message, (WITHOUT,), level="warning" if rescues else None)


def sized(run: Run, zero: Zero, found: Estimate) -> Estimate:
    """The estimate with a bucket that suits the links, if this one is larger."""
    bucket = min(zero.reduce_bucket_size, BUCKET)
    return estimate(edited(run, {"reduce_bucket_size": bucket}, rule.id)) or found


def less(plain: Estimate, other: Estimate) -> bool:
    """Whether plain training needs less by a part of the card that is worth a word."""
    return other.needed.low - plain.needed.low > NOTICEABLE * plain.usable


rule = Rule(
    id="zero-raises-memory",
    stage="lint",
    title="ZeRO that needs more memory than plain data parallelism",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    why="""
        DeepSpeed trains fp32 master weights with fp32 states, and casts gradients to fp32 for the step. Plain axolotl
        in bf16 has none of this. On two GPUs a share of it can be more than the whole of the plain run.
    """,
    cost="A full fine-tune in bf16 loses the fp32 master weights, which keep updates that bf16 would round away.",
    safe=lambda run: run.adapter is not None,
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:469-496,2160-2195@0.18.9; "
        "axolotl/utils/config/__init__.py:191-196@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero1.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
        ),
        but(gpus="8x a100-80gb"),
        only("base_model: Qwen/Qwen2.5-3B", "deepspeed: deepspeed_configs/zero1.json"),
        only("base_model: EleutherAI/pythia-1b", "deepspeed: true", gpus="8x a100-80gb"),
        but("tensor_parallel_size: 2", without=("sequence_len", "gradient_checkpointing", "attn_implementation")),
        only("base_model: openai/gpt-oss-20b", "deepspeed: deepspeed_configs/zero1.json", gpus="2x a100-80gb"),
        but("deepspeed: zero.json", deepspeed='{"zero_optimization": {"stage": 0}, "bf16": {"enabled": true}}'),
        but(
            "base_model: Qwen/Qwen2.5-0.5B",
            "sequence_len: 1024",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "deepspeed: zero.json",
            gpus="2x rtx-3090",
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "stage3_prefetch_bucket_size": 2000000000,
                    "stage3_max_live_parameters": 2000000000,
                    "offload_param": {
                      "device": "cpu"
                    }
                  },
                  "bf16": {
                    "enabled": true
                  }
                }
            """,
        ),
        but(
            "base_model: Qwen/Qwen2.5-0.5B",
            "sequence_len: 512",
            "deepspeed: zero.json",
            gpus="2x rtx-4090",
            deepspeed='{"zero_optimization": {"stage": 2, "overlap_comm": true}}',
        ),
    ),
)
