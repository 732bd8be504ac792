"""Quantization-aware training with types that axolotl or torchao has no quantizer for."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, without

ACCEPTED = {
    ("int4", ""),
    ("int4", "int8"),
    ("int4", "float8_e4m3fn"),
    ("float8_e4m3fn", "float8_e4m3fn"),
}
ANY_INPUTS = {"ternary", "mxfp4"}
KNOWN = {"int4", "int8", "float8_e4m3fn", "nvfp4", "mxfp4", "ternary"}


def finds(run: Run) -> Iterator[Hit]:
    """Pairs of types that are turned down once the model is loaded; other names than these the schema refuses."""
    found = run.fake_quantization
    if found is None or found.weight not in KNOWN or found.weight in ANY_INPUTS:
        return
    if (found.weight, found.inputs) in ACCEPTED:
        return
    pair = f"`weight_dtype: {found.weight}`" + (f" with `activation_dtype: {found.inputs}`" if found.inputs else "")
    who = "torchao" if found.weight == "nvfp4" else "axolotl"
    message = f"{pair} is refused by {who} once the model is loaded; write `int4` with `int8`, `float8` or neither"
    yield Hit("qat.weight_dtype" if run.config.has("qat.weight_dtype") else "qat", message)


rule = Rule(
    id="qat-type-refused",
    stage="lint",
    title="Train with types that torchao can simulate",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl turns both types into a quantization config, and torchao into quantizers that are trained through. Of
        some pairs there are none: axolotl asks for NVFP4 by a config that torchao 0.17.0, which it pins, does not
        take, and knows no training with 8-bit integer weights.
    """,
    safe=True,
    source="axolotl/utils/quantization.py:82-146@0.19.0; torchao/quantization/qat/fake_quantize_config.py:504@0.17.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-3B
                sequence_len: 4096
                qat:
                  weight_dtype: nvfp4
                  activation_dtype: nvfp4
                  group_size: 16
            """,
            fires=True,
        ),
        but("qat:\n  group_size: 32", fires=True),
        but("qat:\n  weight_dtype: int4\n  activation_dtype: int8"),
        but("qat:\n  weight_dtype: mxfp4\n  activation_dtype: mxfp4"),
        but("qat:\n  weight_dtype: int3"),
        without("qat"),
    ),
)
