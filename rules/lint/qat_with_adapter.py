"""Quantization-aware training with an adapter, which it does not reach."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without


def finds(run: Run) -> Iterator[Hit]:
    """Where axolotl accepts the pair; with 4 or 8 bits it refuses it."""
    if run.config.get("qat") and run.lora is not None and not run.config.get("load_in_4bit"):
        if run.config.get("load_in_8bit") or run.config.get("peft"):
            return
        why = "it quantizes the frozen base in training, and the adapter that is trained is never quantized"
        yield Hit("qat", f"`qat` with `adapter: {run.adapter}`: {why}; remove one of the two", on_key=True)


rule = Rule(
    id="qat-with-adapter",
    stage="lint",
    title="Quantization-aware training does not reach an adapter",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        axolotl replaces the linear layers by fake-quantized ones, and puts the adapter on top of them. The layers that
        learn from the rounding are frozen, and the adapter's matrices see none of it. What is merged and quantized in
        the end was not trained for that. axolotl refuses `qat` with a `peft` block, but does not look at `adapter`.
    """,
    safe=False,
    source="axolotl/loaders/model.py:200-204,258-274,492-504@0.19.0; axolotl/utils/schemas/config.py:2166-2178@0.19.0",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.2-3B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "qat:\n  weight_dtype: int4\n  group_size: 32",
            gpus="8x h100-80gb",
            fires=True,
        ),
        without("adapter", "lora_r", "lora_alpha", "lora_target_linear"),
        but("qat:\n  weight_dtype: int4", "load_in_8bit: true", gpus="1x a100-80gb"),
        but("qat:\n  weight_dtype: int4", "load_in_4bit: true", gpus="1x a100-80gb"),
        but(without=("qat",), gpus="1x a100-80gb"),
        but("qat:\n  weight_dtype: int4", "peft: 2", gpus="1x a100-80gb"),
        but("base_model: meta-llama/Llama-3.1-8B", without=("qat",), gpus="1x a100-80gb"),
    ),
)
