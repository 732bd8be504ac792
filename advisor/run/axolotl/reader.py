"""Typed reading of a document's keys, remembering where each fact came from."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from advisor.errors import InputError
from advisor.util import is_list, is_mapping

TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
FALSE = frozenset({"false", "f", "no", "n", "off", "0"})
INTEGER = re.compile(r"[+-]?\d{1,19}")
MOST = 2**64
"""Above any size there is; a product of several still fits into a float."""


class Spanned(Protocol):
    """What a reader needs of a span."""

    @property
    def line(self) -> int: ...  # noqa: D102
    @property
    def column(self) -> int: ...  # noqa: D102


class Source(Protocol):
    """A document, or a part of one: values by dotted path, and their spans."""

    @property
    def file(self) -> str: ...  # noqa: D102
    def at(self, path: str, default: object = None) -> object: ...  # noqa: D102
    def span(self, path: str) -> Spanned | None: ...  # noqa: D102


class Reader:
    """Reads keys as pydantic's lax mode would, so that what axolotl accepts is accepted here.

    A blank value counts as absent, as in axolotl (``model_dump(exclude_none=True)``). A value of the wrong type is
    an ``InputError`` at its span. ``origins`` maps each fact that was read to its key, or to why it has its default.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.origins: dict[str, str] = {}

    def has(self, key: str) -> bool:
        """Whether ``key`` is there and not blank."""
        return self.source.at(key) is not None

    def take(self, key: str, default: object, why: str) -> object:
        """The value of ``key``, or ``default``; either way its origin is noted."""
        value = self.source.at(key)
        self.origins[key] = key if value is not None else why
        return default if value is None else value

    def flag(self, key: str, default: bool = False, why: str = "axolotl's default") -> bool:
        """A boolean."""
        value = self.take(key, default, why)
        match value:
            case bool():
                return value
            case int() | float() if value in (0, 1):
                return bool(value)
            case str() if value.lower() in TRUE | FALSE:
                return value.lower() in TRUE
            case _:
                raise self.wrong(key, value, "true or false")

    def integer(self, key: str, default: int, why: str = "axolotl's default", least: int = 0, most: int = MOST) -> int:
        """An integer from ``least`` to ``most``."""
        value = self.take(key, default, why)
        number = as_integer(value)
        if number is None:
            raise self.wrong(key, value, "an integer")
        if number < least:
            raise self.wrong(key, value, f"at least {least}")
        if number > most:
            raise self.wrong(key, value, f"at most {most}")
        return number

    def number(self, key: str, default: float, why: str = "axolotl's default") -> float:
        """An integer or a float."""
        value = self.take(key, default, why)
        try:
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
            return float(str(value)) if isinstance(value, str) else float("nan")
        except (ValueError, OverflowError):
            raise self.wrong(key, value, "a number") from None

    def text(self, key: str, default: str = "", why: str = "axolotl's default") -> str:
        """A string."""
        value = self.take(key, default, why)
        if not isinstance(value, str):
            raise self.wrong(key, value, "a string")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; a single string counts as a list of one."""
        value = self.take(key, (), "not given")
        if isinstance(value, str):
            return (value,)
        items: list[Any] = value if is_list(value) else []
        if value != () and not (items and all(isinstance(item, str) for item in items)) and value != []:
            raise self.wrong(key, value, "a list of strings")
        return tuple(items)

    def mapping(self, key: str) -> Mapping[str, object]:
        """A mapping; empty if absent."""
        value = self.take(key, {}, "not given")
        if not is_mapping(value):
            raise self.wrong(key, value, "a mapping")
        return {str(name): item for name, item in value.items()}

    def wrong(self, key: str, value: object, expected: str) -> InputError:
        """The error that says what ``key`` should have been."""
        span = self.source.span(key)
        place = (span.line, span.column) if span else (0, 0)
        return InputError(
            f"`{key}: {shown(value)}` must be {expected}",
            self.source.file,
            *place,
            remedy="correct the value",
        )


def as_integer(value: object) -> int | None:
    """``2``, ``2.0`` and ``"2"`` are 2, as pydantic has it; None for what is no integer."""
    match value:
        case bool():
            return None
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case str():
            return int(value) if INTEGER.fullmatch(value.strip()) else None
        case _:
            return None


def shown(value: object) -> str:
    """A value as it would be written, cut to a line."""
    text = value if isinstance(value, str) else repr(value)
    text = text.replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."
