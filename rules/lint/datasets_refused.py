"""Datasets in a form that axolotl cannot read."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor import Example, Hit, Rule, Run, Set, but, is_list, is_mapping, without
from advisor.schemas.refusals import refused

# The old names of a turn's parts, and what they are now: axolotl/utils/schemas/utils.py:40-74@0.19.0.
OLD = {"message_field_role": "role", "message_field_content": "content"}
NEW = "message_property_mappings"


def finds(run: Run) -> Iterator[Hit]:
    """``datasets`` that is no list of mappings; and items that contradict themselves."""
    value = run.config.get("datasets")
    if value is None:
        return
    if not is_list(value):
        yield not_a_list(run, value)
    else:
        for number, item in enumerate(value):
            yield from item_hits(run, f"datasets.{number}", item)


def not_a_list(run: Run, value: object) -> Hit:
    """A dataset's name alone, or its keys without the dash."""
    if is_mapping(value):
        because, remedy = "it takes a list of mappings", "put a dash in front of the first key, and indent the others"
        return Hit("datasets", refused(run, "`datasets` is a mapping", because, remedy), on_key=True)
    because, remedy = "it takes a list of mappings", "write `- path: NAME`, and the `type` below it"
    edits = (Set("datasets", [{"path": value}]),) if isinstance(value, str) and value else ()
    return Hit("datasets", refused(run, f"`datasets: {str(value)[:40]}`", because, remedy), edits)


def item_hits(run: Run, at: str, item: object) -> Iterator[Hit]:
    """What is wrong with one of them."""
    if not is_mapping(item):
        remedy = f"write `- path: {item}`" if isinstance(item, str) else "remove it"
        edits = (Set(at, {"path": item}),) if isinstance(item, str) and item else ()
        yield Hit(at, refused(run, "an item of `datasets` that is no mapping", "it has no keys", remedy), edits)
        return
    if run.config.get("rl") in ("dpo", "ipo", "simpo", "kto"):
        return  # read by other classes, which drop these keys
    jinja = "chat_template_jinja"
    if item.get("chat_template") == "jinja" and not item.get(jinja):
        because = "the template's text is missing here, where that of the top level does not count"
        remedy = f"add `{jinja}` to this dataset, or name one of axolotl's templates"
        yield Hit(f"{at}.chat_template", refused(run, f"`chat_template: jinja` without `{jinja}`", because, remedy))
    yield from old_names(run, at, item)


def old_names(run: Run, at: str, item: Mapping[Any, Any]) -> Iterator[Hit]:
    """The old key of a name that its mapping gives as another."""
    mapping = item.get(NEW)
    for key, part in OLD.items():
        if key in item and is_mapping(mapping) and part in mapping and mapping[part] != item[key]:
            head = f"`{key}: {item[key]}` with `{NEW}.{part}: {mapping[part]}`"
            yield Hit(f"{at}.{key}", refused(run, head, "the two name different columns", f"remove `{key}`"))


rule = Rule(
    id="datasets-refused",
    stage="lint",
    title="Datasets in a form that axolotl cannot read",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        `datasets` is a list with a mapping for each: `path`, `type` and what goes with them. axolotl stops at a name
        alone, at keys without a dash in front, and at two names for the same column.
    """,
    safe=False,
    source="axolotl/utils/config/__init__.py:472-496@0.19.0; axolotl/utils/schemas/datasets.py:205-233@0.19.0; "
    "axolotl/utils/schemas/utils.py:40-74@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                datasets: tatsu-lab/alpaca
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: tatsu-lab/alpaca
            """,
        ),
        but("datasets:\n  path: tatsu-lab/alpaca\n  type: alpaca", fires=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - tatsu-lab/alpaca
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: tatsu-lab/alpaca
            """,
        ),
        but(
            """
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    message_field_role: from
                    message_property_mappings:
                      role: speaker
            """,
            fires=True,
        ),
        but("""
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    message_field_role: from
                    message_property_mappings:
                      role: from
            """),
        without("datasets"),
        but("""
                rl: dpo
                datasets:
                  - path: someone/pairs
                    type: chat_template
                    message_field_role: from
                    message_property_mappings:
                      role: speaker
            """),
        but("""
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    chat_template: jinja
                    chat_template_jinja: "{{ messages }}"
            """),
        but("""
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    message_field_role: from
            """),
        but("""
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    message_property_mappings:
                      role: speaker
            """),
        but("""
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    message_field_role: from
                    message_property_mappings:
                      content: value
            """),
        but(
            """
                chat_template_jinja: "{{ messages }}"
                datasets:
                  - path: someone/conversations
                    type: chat_template
                    chat_template: jinja
            """,
            fires=True,
        ),
    ),
)
