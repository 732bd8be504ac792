"""The 4 bits that the config asks for and does not get."""

from advisor import Example, Rule, Run, but, only
from advisor.run.axolotl.lora_kernels import for_attention


def applies(run: Run) -> bool:
    """Whether ``load_in_4bit`` stands without the adapter that brings it about."""
    return run.adapter == "lora" and run.quantization is None and run.is_on("load_in_4bit")


rule = Rule(
    id="quantize-as-asked",
    stage="fit",
    title="Quantize the base to 4 bits, as `load_in_4bit` asks",
    label="QLoRA: 4-bit base, as asked",
    when=applies,
    edits=lambda run: {"adapter": "qlora", **for_attention(run)},
    why="""
        axolotl quantizes to 4 bits with `adapter: qlora` alone. With `adapter: lora` it loads the base as it is, and
        prepares it as if it were quantized: PEFT turns every weight to fp32, eight times what QLoRA stores.
    """,
    cost="A small loss of quality, and steps slower by a few percent to 40 % for dequantizing, as in any QLoRA.",
    because="The base is in 4 bits; with `adapter: lora` PEFT turns it to fp32.",
    price="A small loss of quality; steps a few percent to 40 % slower.",
    safe=False,
    source="axolotl/loaders/model.py:801-846,1116-1151@0.19.0; peft/utils/other.py:190-202@0.20.0",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="31.9 -> 9.3 GiB",
        ),
        but(
            "base_model: nobody/knows-this",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
            fixed=True,
        ),
        only(
            "base_model: nobody/knows-this", "adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"
        ),
        but(
            "base_model: nobody/knows-this",
            "load_in_8bit: true",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: nobody/knows-this", "load_in_4bit: true"),
    ),
)
