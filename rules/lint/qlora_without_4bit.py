"""QLoRA whose base is not asked for in 4 bits."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where ``load_in_4bit`` is missing or off."""
    if run.adapter != "qlora" or run.is_on("load_in_4bit") or run.is_on("merge_lora"):
        return
    in_8bit = run.is_on("load_in_8bit")
    what = "with `load_in_8bit: true`" if in_8bit else "without `load_in_4bit: true`"
    remedy = "write `load_in_4bit: true` instead, or `adapter: lora`" if in_8bit else "write it"
    at = "load_in_8bit" if in_8bit else "load_in_4bit" if run.config.has("load_in_4bit") else "adapter"
    stale = (Remove("load_in_8bit"),) if in_8bit else ()
    edit = Set("load_in_4bit", True, after="adapter")
    yield Hit(at, f"`adapter: qlora` {what}: axolotl stops; {remedy}", (edit, *stale))


def says_nothing_else(run: Run) -> bool:
    """Whether 4 bits are all that can be meant."""
    return not run.is_on("load_in_8bit")


rule = Rule(
    id="qlora-without-4bit",
    stage="lint",
    title="QLoRA without a base in 4 bits",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        QLoRA is LoRA on a base in 4 bits. axolotl wants both `adapter: qlora` and `load_in_4bit: true`,
        and refuses one without the other. LoRA on a base in 8 bits is `adapter: lora` with `load_in_8bit: true`.
    """,
    safe=says_nothing_else,
    source="axolotl/utils/schemas/peft.py:201-224@0.19.0",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
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
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_8bit: true
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
        but("load_in_8bit: false", fixed=True),
        but("merge_lora: true", without=("load_in_8bit",), gpus="1x a100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but("adapter: lora", without=("load_in_8bit",), gpus="1x a100-80gb"),
        but("merge_lora: true", without=("load_in_8bit",), gpus="1x a100-80gb"),
    ),
)
