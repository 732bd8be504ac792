"""Two ways of quantizing one base."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Each pair that axolotl refuses."""
    bits = next((key for key in ("load_in_4bit", "load_in_8bit") if run.is_on(key)), None)
    if run.adapter == "qlora" and run.is_on("load_in_4bit") and not run.is_on("merge_lora"):
        if run.is_on("load_in_8bit"):
            message = "`load_in_8bit: true` with `adapter: qlora`, which is for 4 bits: axolotl stops; remove it"
            yield Hit("load_in_8bit", message, (Remove("load_in_8bit"),))
        if run.is_on("gptq"):
            message = "`gptq: true` with `adapter: qlora`: axolotl stops; for a GPTQ base write `adapter: lora`"
            yield Hit("gptq", message)
    if run.config.get("model_quantization_config") and bits:
        named = run.config.get("model_quantization_config")
        message = f"`model_quantization_config: {named}` with `{bits}: true`: axolotl stops; keep one of the two"
        yield Hit("model_quantization_config", message)
    if run.config.get("qat") and bits and run.config.get("adapter"):
        message = f"`qat` with `{bits}: true`: axolotl stops, since the weights that it trains are not there; keep one"
        yield Hit("qat", message, on_key=True)


rule = Rule(
    id="two-quantizations",
    stage="lint",
    title="Two ways of quantizing one base",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        The base is stored in one way: in 4 bits, in 8, as its checkpoint was quantized (GPTQ, MXFP4, FP8), or in full
        for quantization-aware training. axolotl refuses two at once. (With `adapter: lora` it silently lets 8 bits
        win over 4: `lora-with-4bit`.)
    """,
    safe=False,
    source="axolotl/utils/schemas/peft.py:215-224@0.19.0; axolotl/utils/schemas/validation.py:1359-1365@0.19.0; "
    "axolotl/utils/schemas/config.py:2166-2178@0.19.0",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_8bit: true
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        but(
            "base_model: openai/gpt-oss-20b",
            "model_quantization_config: Mxfp4Config",
            gpus="1x a100-80gb",
            fires=True,
            fixed=True,
        ),
        but(
            "base_model: openai/gpt-oss-20b",
            "model_quantization_config: Mxfp4Config",
            "model_quantization_config_kwargs:\n  dequantize: true",
            "adapter: lora",
            without=("load_in_8bit", "load_in_4bit"),
            gpus="1x a100-80gb",
        ),
        but(
            "base_model: openai/gpt-oss-20b",
            "adapter: lora",
            "qat:\n  weight_dtype: int8",
            without=("load_in_8bit", "load_in_4bit"),
            gpus="1x a100-80gb",
        ),
        but("adapter: lora", gpus="1x a100-80gb"),
        but(gpus="1x a100-80gb", fixed=True),
        only("base_model: meta-llama/Llama-3.1-8B", "adapter: qlora", "load_in_8bit: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "load_in_8bit: true", "qat:\n  weight_dtype: int8"),
        but("merge_lora: true", gpus="1x a100-80gb"),
    ),
)
