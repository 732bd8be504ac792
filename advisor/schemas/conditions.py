"""Conditions on the values of keys, as the table of refusals writes them.

``"given"``, ``"missing"``, ``"on"``, ``"off"``, ``"blank"``; a list: one of these; and mappings of one operator:
``not`` (none of these, or missing), ``outside`` (there, and none of these in whatever case), ``word_outside`` (the
same of texts alone), ``items_outside`` and ``part_of`` (of the items of a list), ``above``, ``below``, ``at_most`` (a
number, or the path of one), ``longer``, ``length_differs``, ``differs`` (from the value at a path), ``before`` (an
older version).
"""

from collections.abc import Callable
from typing import Any, TypeGuard

from advisor.run.axolotl.reader import FALSE
from advisor.run.stack import release
from advisor.util import is_list, is_mapping

Look = Callable[[str], object]
"""The value at a path; None where there is none."""


def holds(condition: Any, value: object, look: Look) -> bool:
    """Whether a value is what a condition asks for."""
    match condition:
        case "given":
            return value is not None
        case "missing":
            return value is None
        case "on":
            return is_on(value)
        case "off":
            return not is_on(value)
        case "blank":
            return isinstance(value, str) and not value.strip()
        case list():
            return value in condition
        case _:
            ((operator, wanted),) = condition.items()
            return _operated(operator, wanted, value, look)


def _operated(operator: str, wanted: Any, value: object, look: Look) -> bool:
    """What an operator says of a value."""
    match operator:
        case "not":
            return value not in wanted
        case "outside":
            return value is not None and value is not False and folded(value) not in wanted
        case "word_outside":
            return isinstance(value, str) and folded(value) not in wanted
        case "items_outside":
            return is_list(value) and any(folded(item) not in wanted for item in value)
        case "part_of":
            items = [item for item in value if isinstance(item, str)] if is_list(value) else []
            return any(item in name for item in items for name in wanted)
        case "longer":
            return is_list(value) and len(value) > wanted
        case "before":
            return isinstance(value, str) and release(value) < release(wanted)
        case "differs" | "length_differs":
            return differ(operator, value, look(wanted))
        case _:
            return compared(operator, value, look(wanted) if isinstance(wanted, str) else wanted)


def differ(operator: str, one: object, other: object) -> bool:
    """Whether two values, or the lengths of two lists, are both there and not the same."""
    if operator == "differs":
        return is_on(one) and is_on(other) and one != other
    return is_list(one) and is_list(other) and len(one) != len(other)


def compared(operator: str, value: object, bound: object) -> bool:
    """Whether a number lies where it may not."""
    if not is_number(value) or not is_number(bound):
        return False
    match operator:
        case "above":
            return value > bound
        case "below":
            return value < bound
        case _:
            return value <= bound


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number, flags left out."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_on(value: object) -> bool:
    """Whether axolotl's validators take a value for set; a quoted "false" has the benefit of the doubt."""
    return bool(value) and not (isinstance(value, str) and value.lower() in FALSE)


def folded(value: object) -> object:
    """A word in lower case, since most validators take it in any; anything else as it is."""
    return value.lower() if isinstance(value, str) else value if not is_mapping(value) else str(value)
