"""A quantized base, and nothing that could be trained."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

ADAPTERS = {"load_in_4bit": "qlora", "load_in_8bit": "lora"}


def finds(run: Run) -> Iterator[Hit]:
    """Where the weights are asked for in 4 or 8 bits, without an adapter."""
    if run.config.get("adapter") or run.is_on("inference"):
        return
    for key, adapter in ADAPTERS.items():
        if run.is_on(key):
            why = "axolotl stops, since quantized weights cannot be trained"
            yield Hit(key, f"`{key}: true` without an adapter: {why}; add `adapter: {adapter}`, or remove it")


rule = Rule(
    id="quantization-without-adapter",
    stage="lint",
    title="A quantized base without an adapter",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        4 and 8 bits are for a frozen base. What is trained is an adapter; without one there is nothing to
        train. A full fine-tune needs the weights in bf16.
    """,
    safe=False,
    source="axolotl/utils/schemas/peft.py:176-188@0.19.0",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", "load_in_4bit: true", gpus="1x rtx-4090", fires=True),
        but("base_model: Qwen/Qwen2.5-0.5B", "load_in_8bit: false", "load_in_4bit: false"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true", gpus="1x a100-80gb"),
        but("inference: true", gpus="1x a100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B", "load_in_8bit: true", "inference: true"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_8bit: true",
        ),
    ),
)
