"""A run whose loading alone does not fit."""

from collections.abc import Iterator

from advisor import Estimate, Example, Hit, Rule, Run, but, gib, only
from advisor.engine.registry import built_in_rules
from advisor.memory import estimate

# They name the cause and the way out.
SAY_MORE = ("moe-experts-not-quantized", "quantized-base-not-sharded", "zero3-loads-fp32")


def finds(run: Run) -> Iterator[Hit]:
    """Where the run does not fit, every phase after the load would, and no other rule says why."""
    found = estimate(run)
    if found is None or found.on_gpu != "does-not-fit":
        return
    training = after_load(found)
    if training > found.usable or any(list(built_in_rules("lint")[name].finds(run)) for name in SAY_MORE):
        return
    yield Hit("", f"only loading does not fit: training itself needs {gib(training)}; {remedy(run)}")


def after_load(found: Estimate) -> int:
    """The most that a later phase needs, fragmentation included."""
    later = max((phase.bytes for phase in found.phases if phase.name != "load"), default=0)
    return round(later * found.needed.high / max(1, found.allocated_peak))


def remedy(run: Run) -> str:
    """What makes the load smaller, by what makes it large."""
    experts = run.model is not None and run.model.by_kind.get("experts", 0) > 0
    if run.quantization == "int8" and not experts:
        return "every GPU loads the whole base in 8 bits; 4 bits (`adapter: qlora`) are half of that"
    if run.quantization is not None:
        return "every GPU loads the whole quantized model; take larger GPUs or a smaller model"
    if run.fsdp is not None and not run.fsdp.cpu_ram_efficient_loading:
        return "set `cpu_ram_efficient_loading: true` in `fsdp_config`, or every GPU loads the whole model"
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
        Loading can need more than training: FSDP and ZeRO-3 shard a quantized base only once every GPU holds all of
        it, and axolotl casts embeddings to fp32 on the way. The remedies for training (smaller batches, checkpointing,
        offloading) do nothing for it.
    """,
    safe=False,
    source="advisor/memory/model.py; https://github.com/axolotl-ai-cloud/axolotl/issues/1717",
    examples=lambda: (
        Example(
            gpus="8x a100-40gb",
            before="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 512
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 2048", gpus="1x rtx-4090"),
        but(
            without=("sequence_len", "gradient_checkpointing", "attn_implementation", "fsdp_version"),
            gpus="8x a100-80gb",
        ),
        only("base_model: meta-llama/Llama-3.1-70B", gpus=""),
        but(
            "base_model: Qwen/Qwen3-30B-A3B",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation", "fsdp_version"),
        ),
        only(
            "base_model: meta-llama/Llama-3.1-70B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="8x a100-40gb",
        ),
    ),
)
