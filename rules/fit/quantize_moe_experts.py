"""Quantize stacked experts as well."""

from advisor import Example, Rule, Run, RunEdits, but, only

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def edits(run: Run) -> RunEdits:
    """On; `lora_target_linear` is rejected then, so the attention's projections are named instead."""
    by_name = {"lora_targets": ATTENTION} if run.lora is not None and run.is_on("lora_target_linear") else {}
    return {"quantize_moe_experts": True} | by_name


def applies(run: Run) -> bool:
    """Whether experts stay in half precision with a quantized base."""
    stacked = run.model is not None and any(t.kind == "experts" and not t.linear for t in run.model.tensors)
    return stacked and run.quantization in {"nf4", "int8"} and not run.quantize_moe_experts


def label(before: Run, _after: Run) -> str:
    """The experts, and the adapters where they move."""
    moved = "lora_targets" in edits(before)
    return f"quantized experts{', adapters on attention' if moved else ''}"


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
        it while loading.
    """,
    cost="As for QLoRA; with `lora_target_linear` before, the MLP's adapters go.",
    because="Stacked experts no longer stay in half precision or fp32.",
    price="As for QLoRA; with `lora_target_linear` the MLP's adapters go.",
    safe=False,
    source="axolotl docs/expert_quantization.qmd; utils/schemas/config.py:1876@0.18.0; https://github.com/axolotl-ai-cloud/axolotl/issues/3374",
    examples=(
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
