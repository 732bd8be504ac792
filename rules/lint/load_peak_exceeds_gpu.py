"""A run whose loading alone does not fit."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run
from advisor.memory import Estimate, estimate
from advisor.units import gib


def finds(run: Run) -> Iterator[Hit]:
    """Where the run does not fit, and every phase after the load would."""
    found = estimate(run)
    if found is None or found.verdict != "does-not-fit" or found.peak_phase != "load":
        return
    training = after_load(found)
    if training <= found.usable:
        yield Hit("", f"only loading does not fit: training itself needs {gib(training)}; {remedy(run)}")


def after_load(found: Estimate) -> int:
    """The most that a later phase needs, fragmentation included."""
    later = max((phase.bytes for phase in found.phases if phase.name != "load"), default=0)
    return round(later * found.needed.high / max(1, found.allocated_peak))


def remedy(run: Run) -> str:
    """What makes the load smaller, by what makes it large."""
    if run.zero is not None and run.zero.loads_fp32:
        return "set `bf16.enabled` to true in the DeepSpeed JSON, so that shards are not built in fp32"
    experts = run.model is not None and run.model.by_kind.get("experts", 0) > 0
    if run.quantization in {"nf4", "int8"} and experts and not run.quantize_moe_experts:
        return "the experts stay in 16 bits; set `quantize_moe_experts: true`"
    if run.quantization == "nf4" and run.world_size > 1 and run.fsdp is None:
        return "every GPU loads the whole quantized model; FSDP1 with `qlora_sharded_model_loading` loads it in pieces"
    if run.quantization is not None:
        return "every GPU loads the whole quantized model; take larger GPUs or a smaller model"
    if run.adapter is not None:
        return "quantize the base, or shard it while it is loaded (ZeRO-3, FSDP)"
    return "shard the weights while they are loaded (ZeRO-3, FSDP), or take a smaller model"


rule = Rule(
    id="load-peak-exceeds-gpu",
    stage="lint",
    title="A run whose loading alone does not fit",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Loading can need more than training: ZeRO-3 partitions a quantized base only once every GPU holds all of it,
        builds shards in fp32 unless the JSON says bf16 outright, and axolotl casts embeddings to fp32 on the way. The
        remedies for training (smaller batches, checkpointing, offloading) do nothing for it.
    """,
    safe=False,
    source="advisor/memory/resident.py; https://github.com/axolotl-ai-cloud/axolotl/issues/1717",
    examples=(
        Example(
            gpus="4x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            fires=True,
        ),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
            """,
        ),
    ),
)
