"""Quantize stacked experts as well."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.memory.weights import unreached_experts
from advisor.run.axolotl.expert_targets import all_linear_by_name


def edits(run: Run) -> RunEdits:
    """On; `lora_target_linear` is refused then, so the modules that it means are named instead."""
    if run.model is None or run.lora is None or not run.is_on("lora_target_linear"):
        return {"quantize_moe_experts": True}
    return {"quantize_moe_experts": True, "lora_targets": all_linear_by_name(run, run.model)}


def applies(run: Run) -> bool:
    """Whether stacked experts stay as they are in a quantized base."""
    return run.model is not None and unreached_experts(run, run.model) > 0


def is_asked(run: Run) -> bool:
    """Whether the YAML itself asks for these bits, not a step before this one; FSDP may load experts on the host."""
    return run.fsdp is None and not all(map(run.config.is_edited, ("adapter", "load_in_4bit")))


def label(before: Run, _after: Run) -> str:
    """In how many bits, and whether they were asked for."""
    bits = 4 if before.quantization == "nf4" else 8
    return f"experts in {bits} bits too{', as asked' if is_asked(before) else ''}"


rule = Rule(
    id="quantize-moe-experts",
    stage="fit",
    title="Quantize the experts too",
    label=label,
    when=applies,
    edits=edits,
    why="""
        transformers 5 keeps a layer's experts in one stacked tensor, which bitsandbytes does not reach: most of a
        mixture-of-experts model stays in half precision, and PEFT's preparation turns it to fp32. axolotl can quantize
        it while loading. Where the YAML asks for a quantized base, this does what it asks for, and so comes before all
        that would make room for experts in half precision. axolotl refuses `lora_target_linear` with it: the linear
        layers that it means are named instead, so the same adapters are trained.
    """,
    cost="As for QLoRA: a small loss of quality, and experts that are unpacked in every micro-step.",
    because="Without it the base's few bits do not reach experts, most of its weights.",
    price="As for QLoRA: experts are unpacked in every micro-step.",
    safe=is_asked,
    source=(
        "axolotl docs/expert_quantization.qmd; axolotl/utils/schemas/config.py:1949-1971, monkeypatch/moe_quant.py:67, "
        "loaders/adapter.py:54-71,190-201@0.19.0; https://github.com/axolotl-ai-cloud/axolotl/issues/3374"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - k_proj
                  - v_proj
                  - o_proj
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="113.7 -> 19.6 GiB",
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        ),
        but(
            "load_in_4bit: false",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        ),
        only("base_model: nobody/knows-this"),
        but(
            "quantize_moe_experts: true",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        ),
    ),
)
