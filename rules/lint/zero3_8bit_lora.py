"""ZeRO-3 around a base in 8 bits."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, gib
from advisor.memory.weights import weights_of


def finds(run: Run) -> Iterator[Hit]:
    """Where the 8-bit weights would be sharded, and are not."""
    if run.zero_stage != 3 or run.quantization != "int8":
        return
    size = f", {gib(weights_of(run, run.model).frozen_bytes)}," if run.model else ""
    whole = f"bitsandbytes keeps the whole base{size} on each GPU, in addition to ZeRO-3's shard of it"
    yield Hit("load_in_8bit", f"`load_in_8bit: true` with ZeRO-3: {whole}; use ZeRO-2, or 4 bits, which are sharded")


rule = Rule(
    id="zero3-8bit-lora",
    stage="lint",
    title="ZeRO-3 does not shard weights in 8 bits",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        bitsandbytes computes with a second reference to the 8-bit matrix, in the layer's state. ZeRO-3 empties the
        parameter and keeps 1/N of it, but the matrix stays: each GPU holds 1 + 1/N bytes a weight and gathers what it
        already has. Tried on two processes with the versions below. In 2024 the pair crashed while it was loaded. A
        base in 4 bits has one reference only, and is sharded.
    """,
    safe=False,
    source=(
        "bitsandbytes/nn/modules.py:1159-1163,1181-1189@0.50.2; "
        "deepspeed/runtime/zero/partition_parameters.py:313-317@0.18.9; https://github.com/axolotl-ai-cloud/axolotl/issues/2068"
    ),
    examples=lambda: (
        Example(
            gpus="8x rtx-3090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            fires=True,
        ),
        but("deepspeed: deepspeed_configs/zero1.json"),
        but("adapter: qlora", "load_in_4bit: true", without=("load_in_8bit",)),
    ),
)
