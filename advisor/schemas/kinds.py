"""A Python annotation -> what a key accepts, in simple terms that JSON can hold.

``"bool"``, ``"int"``, ``"float"``, ``"str"``, ``"null"``, ``"map"``, ``"any"``; ``{"values": [...]}`` for what is
allowed by name, ``{"pattern": "..."}`` for a text that has it, ``{"list": [...]}`` and ``{"map": [...]}`` for what is
inside, ``{"level": "FSDPConfig"}`` for keys.
"""

import types
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

Kind = str | dict[str, Any]
SIMPLE: dict[Any, Kind] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    type(None): "null",
    dict: "map",
    list: {"list": ["any"]},
}


def kinds_of(annotation: Any, level: Callable[[Any], str]) -> list[Kind]:
    """The alternatives that an annotation allows; ``level`` names the keys of a nested model."""
    found: list[Kind] = []
    for kind in _alternatives(annotation, level):
        if kind not in found:
            found.append(kind)
    return ["any"] if "any" in found else found


def _alternatives(annotation: Any, level: Callable[[Any], str]) -> list[Kind]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        patterns = [pattern for part in arguments[1:] if (pattern := getattr(part, "pattern", None))]
        return [{"pattern": patterns[0]}] if patterns else _alternatives(arguments[0], level)
    if origin in (Union, types.UnionType):
        return [kind for argument in arguments for kind in _alternatives(argument, level)]
    if origin is Literal:
        return [{"values": list(arguments)}]
    if origin in (list, tuple, set):
        inside = [argument for argument in arguments if argument is not Ellipsis]
        return [{"list": kinds_of(Union[tuple(inside)] if inside else Any, level)}]  # noqa: UP007
    if origin is dict:
        inside = kinds_of(arguments[1], level) if arguments else ["any"]
        return ["map" if inside == ["any"] else {"map": inside}]
    return [_plain(annotation, level)]


def _plain(annotation: Any, level: Callable[[Any], str]) -> Kind:
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        values = [member.value for member in cast("Any", annotation)]
        named = all(isinstance(value, (str, int)) for value in values)
        return {"values": values} if named else "any"
    return {"level": level(annotation)} if hasattr(cast("Any", annotation), "model_fields") else "any"


def levels_in(kinds: Sequence[Any]) -> list[str]:
    """The levels among some alternatives, those inside lists left out."""
    found = [cast("dict[str, Any]", kind) for kind in kinds if isinstance(kind, dict)]
    return [kind["level"] for kind in found if "level" in kind]
