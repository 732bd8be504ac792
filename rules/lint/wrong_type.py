"""A value of a type, or of a size, that axolotl refuses."""

import contextlib
import operator
from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, is_list, is_mapping, only
from advisor.schemas import Found, Row, Table, axolotl_keys, fits, nearest

WORDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "map": "a mapping",
    "null": "nothing",
}

BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
NEEDED = ("base_model",)
# What somebody means by a value of this type, where it stands under another key.
MEANT = {
    ("tokens", "dict"): "; named tokens belong under `special_tokens`",
    ("warmup_steps", "float"): "; a share of the steps is `warmup_ratio`",
}


def finds(run: Run) -> Iterator[Hit]:
    """Every value that none of its key's kinds takes, after the conversions that axolotl makes; or that is too much."""
    table = axolotl_keys()
    for found in table.walk(run.config):
        if found.row is None:
            continue
        if not fits(found.row["kinds"], found.value):
            kinds = [kind for kind in found.row["kinds"] if kind != "null"]
            wanted = " or ".join(in_words(kind) for kind in kinds)
            yield Hit(
                found.at,
                f"`{found.key}` is {shown(found.value)}, and axolotl refuses the config: it takes {wanted}"
                f"{remedy(table, found, kinds)}",
                edits(table, found, kinds),
                on_key=found.value is None or is_mapping(found.value),
            )
        elif len(found.row) > 1 and (wanted := bound(found.row, found.value)):
            yield Hit(found.at, f"`{found.key}` is {shown(found.value)}, and axolotl refuses the config: {wanted}")


def bound(row: Row, value: object) -> str:
    """What a number or the length of a list had to be, and is not."""
    if is_list(value):
        return "it takes one item at least; remove the key, or add one" if len(value) < row.get("min_length", 0) else ""
    number = as_number(value)
    if number is None:
        return ""
    over = {"ge": operator.lt, "gt": operator.le, "le": operator.gt, "lt": operator.ge}
    broken = [name for name in BOUNDS if name in row and over[name](number, row[name])]
    return f"it takes {BOUNDS[broken[0]]} {row[broken[0]]:g}" if broken else ""


def as_number(value: object) -> float | None:
    """A number, or a text that pydantic reads as one."""
    with contextlib.suppress(TypeError, ValueError):
        return None if isinstance(value, bool) else float(value)  # pyright: ignore[reportArgumentType]
    return None


def in_words(kind: object) -> str:
    """A kind, for people."""
    if isinstance(kind, str):
        return WORDS.get(kind, kind)
    if is_mapping(kind) and "values" in kind:
        return ", ".join(f"`{value}`" for value in kind["values"])
    if is_mapping(kind) and "pattern" in kind:
        return f"a text that begins with `{kind['pattern'].strip('^$')}`"
    return "a list" if is_mapping(kind) and "list" in kind else "a mapping"


def shown(value: object) -> str:
    """A value, for people."""
    match value:
        case None:
            return "blank"
        case dict():
            return "a mapping"
        case list():
            return "a list that does not fit" if value else "an empty list"
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{str(value)[:40]}`"


def remedy(table: Table, found: Found, kinds: list[object]) -> str:
    """What the edit does, as a clause."""
    if found.path == NEEDED:
        return "; write the model's name"
    match edits(table, found, kinds):
        case (Remove(),):
            return "; remove the key"
        case (Set(value=list()),):
            return "; make it a list"
        case (Set(),):
            return "; quote it"
        case _:
            return MEANT.get((found.key, type(found.value).__name__)) or near(found.value, kinds)


def near(value: object, kinds: list[object]) -> str:
    """The allowed name that a text is nearest to, as a clause."""
    names = [str(name) for kind in kinds if is_mapping(kind) for name in kind.get("values", ())]
    meant = nearest(value.lower(), names) if isinstance(value, str) else None
    return f"; is `{meant}` meant?" if meant else ""


def edits(table: Table, found: Found, kinds: list[object]) -> tuple[Change, ...]:
    """A blank key goes, a number becomes a string, a string becomes a list, where nothing else can be meant."""
    value = found.value
    if value is None:
        return () if found.key in table.required(found.level) else (Remove(found.path),)
    if kinds == ["str"] and isinstance(value, (int, float)) and not isinstance(value, bool):
        return (Set(found.path, str(value)),)
    if kinds == [{"list": ["str"]}] and isinstance(value, str):
        return (Set(found.path, [value]),)
    return ()


rule = Rule(
    id="wrong-type",
    stage="lint",
    title="A value of a type, or of a size, that axolotl refuses",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        axolotl converts `"1"` to 1 and `yes` to true, but no number to a string, no fraction to an integer and no
        string to a list; some numbers have bounds, and some lists must not be empty. It reports this only after its
        imports, on every rank.
    """,
    safe=True,
    source="axolotl/utils/schemas@0.19.0, by way of advisor/schemas/axolotl.json; pydantic's table of conversions",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                wandb_project: 2024
                output_dir:
                special_tokens:
                  additional_special_tokens: <|im_start|>
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                wandb_project: "2024"
                special_tokens:
                  additional_special_tokens:
                    - <|im_start|>
            """,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "sequence_len: 4096", "warmup_steps: 0.1", fires=True),
        only("base_model: Qwen/Qwen2.5-7B", "relora_prune_ratio: 1.5", "test_datasets: []", fires=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                max_steps: 100
                pretraining_dataset:
                  - path: someone/texts
                    type: completion
                    data_files: [a.jsonl, b.jsonl]
            """,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "chat_template: qwen2_5", fires=True),
        but("chat_template: tokenizer_default_fallback_chatml"),
        but(
            "sequence_len: 4096",
            "learning_rate: 2e-5",
            'warmup_steps: "10"',
            "weight_decay: 1e-2",
            "shuffle_merged_datasets: yes",
            "wandb_project:",
            without=("chat_template",),
        ),
        but("wandb_project: 2024", "expert_parallel_size: 2", without=("chat_template",), fires=True),
        but("test_datasets: []", without=("chat_template",), fires=True),
        but("relora_prune_ratio: 0.5", without=("chat_template",)),
        but("relora_prune_ratio:", without=("chat_template",)),
    ),
)
