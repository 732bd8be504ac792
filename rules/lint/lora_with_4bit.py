"""4 bits with plain LoRA, which axolotl does not quantize for."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, gib, only
from advisor.memory.weights import weights_of

KEY = "load_in_4bit"
# How checkpoints that are quantized themselves are named: theirs counts, not the YAML's.
QUANTIZED_NAMES = ("4bit", "bnb", "gptq", "awq")


def finds(run: Run) -> Iterator[Hit]:
    """Where only ``adapter: qlora`` would bring the 4 bits about; or 8 bits win."""
    if run.adapter != "lora" or not run.is_on(KEY) or run.is_on("gptq"):
        return
    if run.is_on("load_in_8bit"):
        message = f"`{KEY}: true` has no effect with `adapter: lora` and `load_in_8bit: true`: 8 bits win; remove it"
        yield Hit(KEY, message, (Remove(KEY),))
    elif run.quantization is None and not any(name in run.base_model.lower() for name in QUANTIZED_NAMES):
        message = (
            f"`{KEY}: true` does not quantize with `adapter: lora`: the base is {stored(run)}; write `adapter: qlora`"
        )
        yield Hit(KEY, message, (Set("adapter", "qlora"),))


def stored(run: Run) -> str:
    """What becomes of the base, and its bytes where the model is known."""
    how = "loaded in half precision"
    if run.upcasts_unquantized:
        how += ", turned to fp32 and cast back by DeepSpeed" if run.zero else " and turned to fp32"
    return f"{how}, {gib(weights_of(run, run.model).frozen_bytes)}" if run.model else how


def eight_bits_win(run: Run) -> bool:
    """Whether the key had no effect."""
    return run.is_on("load_in_8bit")


rule = Rule(
    id="lora-with-4bit",
    stage="lint",
    title="4 bits with plain LoRA",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        axolotl loads 4 bits through bitsandbytes with `adapter: qlora` alone, and 8 with `adapter: lora`. It accepts
        `lora` with 4 bits, loads the base as it is, and then prepares it as if it were quantized: PEFT turns every
        weight in half precision to fp32. That is twice the memory of plain LoRA, and eight times that of QLoRA.
    """,
    cost="A small loss of quality, and steps slower by a few percent to 40 % for dequantizing, as in any QLoRA.",
    safe=eight_bits_win,
    source=("axolotl/loaders/model.py:801-846,1116-1151@0.19.0; peft/utils/other.py:190-202@0.20.0"),
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
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
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        but("load_in_4bit: false"),
        but("gptq: true", without=("load_in_8bit",)),
        but("base_model: openai/gpt-oss-20b", without=("load_in_8bit",)),
        only("base_model: meta-llama/Llama-3.1-8B", "load_in_4bit: true"),
        but("base_model: nobody/knows-this-bnb-4bit", without=("load_in_8bit",)),
    ),
)
