"""Whether a value is of a kind, as pydantic's lax mode converts what YAML gives."""

import math
import re
from collections.abc import Sequence
from typing import Any, cast

from advisor.run.axolotl.reader import FALSE, TRUE
from advisor.util import is_list, is_mapping, regex

_INTEGER = regex(r"\s*[+-]?[\d_]+(\.0*)?\s*")


def fits(kinds: Sequence[Any], value: object) -> bool:
    """Whether one of the alternatives takes the value. Keys inside a level are not looked at."""
    return any(_takes(kind, value) for kind in kinds)


def _takes(kind: Any, value: object) -> bool:
    match kind:
        case "any":
            return True
        case "null":
            return value is None
        case "bool":
            return _is_flag(value)
        case "int":
            return _is_integer(value)
        case "float":
            return _is_number(value)
        case "str":
            return isinstance(value, str)
        case "map":
            return is_mapping(value)
        case _:
            return _takes_inside(cast("dict[str, Any]", kind), value)


def _takes_inside(kind: dict[str, Any], value: object) -> bool:
    if "values" in kind:
        return value in kind["values"]
    if "pattern" in kind:
        return isinstance(value, str) and re.search(kind["pattern"], value) is not None
    if "list" in kind:
        return is_list(value) and all(fits(kind["list"], item) for item in value)
    if "map" in kind:
        return is_mapping(value) and all(fits(kind["map"], item) for item in value.values())
    return is_mapping(value)


def _is_flag(value: object) -> bool:
    if isinstance(value, str):
        return value.lower() in TRUE | FALSE
    return isinstance(value, (int, float)) and value in (0, 1)


def _is_integer(value: object) -> bool:
    if isinstance(value, str):
        return _INTEGER.fullmatch(value) is not None
    if isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, int)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, (int, float))
