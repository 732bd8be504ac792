"""DeepSpeed on one GPU."""

from collections.abc import Iterator

from advisor import Estimate, Example, Hit, Remove, Rule, Run, but, gib, only
from advisor.memory import estimate
from advisor.run.build import with_config

WITHOUT = Remove("deepspeed")
NOTICEABLE = 0.01


def finds(run: Run) -> Iterator[Hit]:
    """Where nothing can be shared out, and nothing needs to leave the GPU."""
    zero = run.zero
    if zero is None or run.hardware is None or run.world_size > 1:
        return
    offloads = zero.offload_optimizer != "gpu" or zero.offload_params != "gpu"
    found, plain = estimate(run), estimate(with_config(run, [WITHOUT]))
    if found is None or plain is None:
        if not offloads:
            yield Hit("deepspeed", "ZeRO has no second GPU to share states with; remove `deepspeed`", (WITHOUT,))
        return
    if offloads and plain.verdict == "fits":
        message = (
            f"offloading is not needed: without `deepspeed` this GPU needs {gib(plain.needed.low)} of "
            f"{gib(plain.usable)}; remove it, and the step runs on the GPU"
        )
        yield Hit("deepspeed", message, (WITHOUT,))
    elif not offloads and plain.verdict != "does-not-fit" and costs(found, plain):
        message = (
            f"without DeepSpeed this one GPU needs {gib(plain.needed.low)} in place of {gib(found.needed.low)}: "
            "there is nothing to shard; remove `deepspeed`"
            f"{'' if same_training(run) else ', unless its fp32 masters are wanted'}"
        )
        rescues = plain.verdict == "fits" and found.verdict != "fits"
        yield Hit("deepspeed", message, (WITHOUT,), level="warning" if rescues else None)


def costs(found: Estimate, plain: Estimate) -> bool:
    """Whether DeepSpeed takes a part of the card that is worth a word."""
    return found.needed.low - plain.needed.low > NOTICEABLE * found.usable


def same_training(run: Run) -> bool:
    """Adapters have fp32 weights either way; offloading exchanges the optimizer."""
    zero = run.zero
    return run.adapter is not None and zero is not None and zero.offload_optimizer == "gpu"


rule = Rule(
    id="deepspeed-single-gpu",
    stage="lint",
    title="DeepSpeed on one GPU",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    why="""
        axolotl starts DeepSpeed on a single GPU as well. There ZeRO divides by one, and adds what it always adds: fp32
        master weights and reduce buckets. It makes sense for what it offloads to the host, if that is needed.
    """,
    cost="A full fine-tune in bf16 loses the fp32 master weights, which keep updates that bf16 would round away.",
    safe=same_training,
    source=(
        "axolotl/utils/trainer.py:568-591@0.19.0; deepspeed/runtime/zero/stage_1_and_2.py:469-496@0.18.9; "
        "https://arxiv.org/abs/2101.06840"
    ),
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 4096
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                deepspeed: deepspeed_configs/zero1.json
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 4096
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-3B",
            "gradient_checkpointing: true",
            "attn_implementation: flash_attention_2",
            "deepspeed: deepspeed_configs/zero2.json",
            gpus="1x rtx-4090",
        ),
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                deepspeed: deepspeed_configs/zero1.json
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero1.json", gpus=""),
        only("base_model: meta-llama/Llama-3.1-70B", "deepspeed: deepspeed_configs/zero1.json", gpus="1x rtx-4090"),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_params.json
            """,
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but("deepspeed: deepspeed_configs/zero1.json", "rl: dpo"),
        only("base_model: nobody/knows-this", "deepspeed: deepspeed_configs/zero2.json"),
        but(
            "base_model: meta-llama/Llama-2-13b-hf",
            "sequence_len: 2304",
            "gradient_checkpointing: true",
            "attn_implementation: flash_attention_2",
            "deepspeed: zero.json",
            gpus="1x rtx-3080",
            deepspeed='{"zero_optimization":{"stage":2, "overlap_comm":true, "offload_optimizer":{"device":"cpu"}}}',
        ),
    ),
)
