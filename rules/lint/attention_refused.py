"""An attention kernel that axolotl refuses by its name."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only, without
from advisor.run.axolotl.attention import can_flash, plain
from advisor.schemas import nearest
from advisor.schemas.names import ATTENTION

KEY = "attn_implementation"
HYBRID = "gemma4_hybrid_attn_impl"
FLASH = "flash_attention_2"
SHORT = {"flash": FLASH, "flash_attention": FLASH, "flash_attn": FLASH, "flex": "flex_attention", "sdp": "sdpa"}


def finds(run: Run) -> Iterator[Hit]:
    """Neither a name of axolotl's nor a kernel of the hub; or not the one that Gemma 4's hybrid wants."""
    name = run.config.get(KEY)
    if not isinstance(name, str):
        return
    if name not in ATTENTION and "/" not in name:
        meant = SHORT.get(name.lower()) or nearest(name, ATTENTION)
        meant = plain(run) if meant == FLASH and not can_flash(run) else meant
        remedy = f"write `{meant}`" if meant else f"take one of {', '.join(sorted(ATTENTION))}, or a kernel of the hub"
        shown = name or '""'
        message = f"`{KEY}: {shown}` is no name that axolotl takes, and it stops; {remedy}"
        yield Hit(KEY, message, (Set(KEY, meant),) if meant else ())
    elif run.config.get(HYBRID) and name != FLASH:
        message = f"`{KEY}: {name}` with `{HYBRID}` is refused by axolotl; write `{FLASH}`, or remove one of the two"
        yield Hit(KEY, message)


rule = Rule(
    id="attention-refused",
    stage="lint",
    title="An attention kernel that axolotl refuses by its name",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        axolotl takes ten names and anything with a slash, which is a kernel of the hub. Short forms such as `flash`
        are refused, and so are names with a revision but without a slash. Gemma 4's hybrid puts its layers of full
        attention elsewhere and leaves the others to FlashAttention 2.
    """,
    safe=True,
    source="axolotl/utils/schemas/config.py:1559-1567, 1609-1634@0.19.0; axolotl/utils/schemas/enums.py:110-141@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                attn_implementation: flash
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                attn_implementation: flash_attention_2
            """,
        ),
        Example(
            gpus="1x v100-32gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                bf16: false
                fp16: true
                attn_implementation: flash
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                bf16: false
                fp16: true
                attn_implementation: sdpa
            """,
        ),
        only(
            "base_model: google/gemma-4-31B",
            "sequence_len: 4096",
            "attn_implementation: sdpa",
            "gemma4_hybrid_attn_impl: true",
            fires=True,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "sequence_len: 4096", "attn_implementation: kernels-community/flash-attn3"),
        but("attn_implementation: flash_attention_2"),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                attn_implementation: flash_atention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                attn_implementation: flash_attention_2
            """,
        ),
        but('attn_implementation: ""', fires=True),
        without("attn_implementation"),
    ),
)
