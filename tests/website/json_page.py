"""The page of the JSON: each object of its schema with its fields, from the schema that ships."""

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from .rules import prose

Schema = Mapping[str, Any]


def page() -> str:
    """One section an object, those that the others are parts of first."""
    schema: Any = json.loads(files("advisor.report").joinpath("schema.json").read_text(encoding="utf-8"))
    first = [_name(each) for each in schema["anyOf"]]
    names = [*first, *(name for name in schema["$defs"] if name not in first)]
    intro = (
        "`--output-format json` of `check` and `estimate`: sizes in bytes, times in seconds."
        " Fields may be added; the version stays as long as none goes."
    )
    blocks = [
        f"# {schema['title']}",
        intro,
        *(part for name in names for part in _section(name, schema["$defs"][name])),
    ]
    return "\n\n".join(blocks) + "\n"


def _section(name: str, definition: Schema) -> Iterator[str]:
    yield f"## {name}"
    if definition.get("description"):
        yield prose(definition["description"])
    if fields := definition.get("properties"):
        rows = [
            f"| `{field}` | {_kind(kind)} | {_cell(kind.get('description', ''))} |" for field, kind in fields.items()
        ]
        yield "\n".join(["| field | | |", "| --- | --- | --- |", *rows])
    elif "enum" in definition:
        yield _kind(definition)


def _cell(text: str) -> str:
    return " ".join(prose(text).split())


def _kind(kind: Schema) -> str:
    """A type in words; an object leads to its section."""
    if "$ref" in kind:
        name = _name(kind)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind:
        return " or ".join(_kind(one) for one in kind["anyOf"])
    if "enum" in kind or "const" in kind:
        return ", ".join(f"`{json.dumps(value)}`" for value in kind.get("enum", [kind.get("const")]))
    if kind.get("type") == "array":
        inner = kind.get("items") or {}
        return f"list of {_kind(inner)}" if inner else "list"
    return str(kind.get("type", "any"))


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rsplit("/", 1)[-1]
