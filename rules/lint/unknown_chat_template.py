"""A dataset's chat template that axolotl does not have."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor import Example, Hit, Rule, Run, but, is_mapping
from advisor.schemas import axolotl_keys, nearest

FALLBACK = "tokenizer_default_fallback_"
STRATEGY = "chat_template"


def finds(run: Run) -> Iterator[Hit]:
    """Each ``chat_template`` of a dataset that its strategy reads, and that names none of axolotl's."""
    for found in axolotl_keys().walk(run.config):
        if found.key != STRATEGY or found.level != "SFTDataset" or found.row is None:
            continue
        name, names = found.value, known(found.row)
        if not isinstance(name, str) or not name or name in names or name.startswith(FALLBACK):
            continue
        if STRATEGY in str(found.siblings.get("type")):
            meant = nearest(name.lower(), names)
            remedy = (
                f"is `{meant}` meant?" if meant else "the key's page lists them; `tokenizer_default` is the model's"
            )
            yield Hit(
                found.at, f"`chat_template: {name}` names no template of axolotl, which stops at the data; {remedy}"
            )


def known(row: Mapping[str, Any]) -> list[str]:
    """The templates by name, as the table of keys has them."""
    return [name for kind in row["kinds"] if is_mapping(kind) for name in kind.get("values", ())]


rule = Rule(
    id="unknown-chat-template",
    stage="lint",
    title="A dataset's chat template that axolotl does not have",
    finds=finds,
    level="error",
    proof="read",
    of_names=True,
    why="""
        At the top level axolotl's schema refuses such a name. Under `datasets` it takes any text, and looks for the
        template only when the rows are read.
    """,
    source="axolotl/utils/schemas/datasets.py:77@0.19.0; axolotl/utils/chat_templates/base.py:82-85@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: someone/chats
                    type: chat_template
                    chat_template: llama-3
            """,
            fires=True,
        ),
        but(
            """
                datasets:
                  - path: someone/chats
                    type: chat_template
                    chat_template: nobodys
            """,
            fires=True,
        ),
        but("""
                chat_template: nobodys
                datasets:
                  - path: someone/chats
                    type: chat_template
                    chat_template: tokenizer_default
                  - path: someone/more
                    type: chat_template
                    chat_template: tokenizer_default_fallback_chatml
                  - path: someone/others
                    type: chat_template
                    chat_template:
                  - path: someone/rest
                    type: chat_template
                    chat_template: ""
                  - path: someone/numbers
                    type: chat_template
                    chat_template: 3
            """),
        but("""
                datasets:
                  - path: someone/texts
                    type: completion
                    chat_template: nobodys
            """),
        but("""
                rl: dpo
                datasets:
                  - path: someone/pairs
                    type: chat_template.default
                    chat_template: nobodys
            """),
    ),
)
