"""What is wrong with the values of a file that somebody brings, in pydantic's finding and our words.

A plain read comes first, and nothing on the way of a valid file imports this.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from advisor.errors import InputError
from advisor.record import record

# https://docs.pydantic.dev/2.12/errors/validation_errors
EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "greater_than": "a positive number",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_type": "a string",
    "tuple_type": "a list of strings",
}
MOST_SHOWN = 60


@record
class _Misfit:
    """The first value that does not fit: its path of keys and list numbers, what it is, what to do."""

    path: tuple[str | int, ...]
    is_: str
    remedy: str

    @property
    def message(self) -> str:
        """The field and its value."""
        return f"`{'.'.join(map(str, self.path))}` {self.is_}" if self.path else f"the whole {self.is_}"


def first_misfit(
    model: type[BaseModel], values: object, expected: Mapping[str, str] = {}, *, as_json: bool = True
) -> _Misfit | None:
    """What ``model`` refuses first, or None. ``expected`` has other words for pydantic's types of error."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        first: Any = error.errors(include_url=False)[0]
        path = tuple(first["loc"])
        if first["type"] == "missing":
            return _Misfit(path, "is missing", "add it")
        context = first.get("ctx", {})
        words = {**EXPECTED, **expected}.get(first["type"]) or str(context.get("expected") or first["msg"])
        wrong = shown(first["input"]) if as_json else first["input"]
        return _Misfit(path, f"is `{wrong}`", f"write {words}")
    return None


def misfit_in_line(
    model: type[BaseModel], line: str | bytes, file: str, number: int, *, otherwise: str, else_: str = "cannot be used"
) -> InputError:
    """What is wrong with one line of a file of JSON lines that a plain read has refused.

    ``otherwise`` is the remedy where it is no JSON at all; ``else_`` is said of a line that fits the model.
    """
    try:
        values = json.loads(line)
    except RecursionError:
        return InputError("not valid JSON: nested too deeply", file, number, remedy=otherwise)
    except json.JSONDecodeError as error:
        return InputError(f"not valid JSON: {error.msg}", file, number, error.colno, remedy=otherwise)
    except ValueError:
        return InputError("not valid JSON: it is not UTF-8", file, number, remedy=otherwise)
    found = first_misfit(model, values)
    if found is None:
        return InputError(else_, file, number, remedy=otherwise)
    return InputError(found.message, file, number, remedy=f"{found.remedy}, or {otherwise}")


def shown(value: object) -> str:
    """A value as JSON has it, shortened."""
    text = json.dumps(value, default=str)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
