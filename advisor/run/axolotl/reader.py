"""Typed reading of a document's keys, remembering where each fact came from."""

from collections.abc import Callable, Mapping
from itertools import repeat
from operator import is_
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from advisor.record import record
from advisor.run.unreadable import is_placeholder
from advisor.util import is_list, is_mapping, regex

Kept = TypeVar("Kept")
Asked = ParamSpec("Asked")
MOST_KEPT = 8
"""So many of the last readings of one function are kept: a search changes a few keys back and forth."""
NOTHING: Any = object()

TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
FALSE = frozenset({"false", "f", "no", "n", "off", "0"})
INTEGER = regex(r"[+-]?\d{1,19}")
MOST = 2**64
"""Above any size there is; a product of several still fits into a float."""


class _Spanned(Protocol):
    """What a reader needs of a span."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class Source(Protocol):
    """A document, or a part of one: values by dotted path, and their spans."""

    @property
    def file(self) -> str: ...  # noqa: D102
    @property
    def values_mapping(self) -> Mapping[str, Any]: ...  # noqa: D102
    def at(self, path: str, default: object = None) -> object: ...  # noqa: D102
    def span(self, path: str) -> _Spanned | None: ...  # noqa: D102


class Watched:
    """A source, and the values of the top-level keys that were asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.seen: dict[str, object] = {}

    @property
    def file(self) -> str:
        """The source's."""
        return self.source.file

    @property
    def values_mapping(self) -> Mapping[str, Any]:
        """The source's."""
        return self.source.values_mapping

    def at(self, path: str, default: object = None) -> object:
        """The value at a path, whose first key is noted."""
        key = path.partition(".")[0]
        self.seen[key] = self.source.values_mapping.get(key, NOTHING)
        return self.source.at(path, default)

    def span(self, path: str) -> _Spanned | None:
        """The source's."""
        return self.source.span(path)


@record(eq=False)
class Reading:
    """What a function read: with which arguments, which values of which keys, and what it made of them."""

    asked: tuple[object, ...]
    keys: tuple[str, ...]
    values: tuple[object, ...]
    facts: object
    origins: Mapping[str, str]
    refused: Mapping[str, str]

    def holds(self, values: Mapping[str, Any], asked: tuple[object, ...]) -> bool:
        """Whether it would be the same of these values: all keys that were looked at hold the same objects.

        A change copies what lies on its path and leaves all else as it is.
        """
        return self.asked == asked and all(map(is_, map(values.get, self.keys, repeat(NOTHING)), self.values))


READINGS: dict[Any, tuple[Reading, ...]] = {}
"""Of each function the last few readings, the last one first."""


class Reader:
    """Reads keys as pydantic's lax mode would, so that what axolotl accepts is accepted here.

    A blank value counts as absent, as in axolotl (``model_dump(exclude_none=True)``). A value of the wrong type counts
    as its default, and ``refused`` says of its key what is wrong; so does ``${X}``, which says nothing yet.
    ``origins`` maps each fact that was read to its key, or to why it has its default.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.origins: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def has(self, key: str) -> bool:
        """Whether ``key`` is there and not blank."""
        return self.source.at(key) is not None

    def part(
        self, read: Callable[Concatenate["Reader", Asked], Kept], *given: Asked.args, **named: Asked.kwargs
    ) -> Kept:
        """What a function reads of the source; taken from an earlier call where nothing that it looks at has changed.

        Edits of a plan change a key or two, and a run is read from each.
        """
        asked, kept, values = (*given, *named.items()), READINGS.get(read, ()), self.source.values_mapping
        for found in kept:
            if found.holds(values, asked):
                break
        else:
            watched = Watched(self.source)
            reader = Reader(watched)
            facts = read(reader, *given, **named)
            seen = (*watched.seen,), (*watched.seen.values(),)
            found = Reading(asked, *seen, facts, reader.origins, reader.refused)
        if not kept or found is not kept[0]:
            READINGS[read] = (found, *(one for one in kept[:MOST_KEPT] if one is not found))
        self.origins |= found.origins
        self.refused |= found.refused
        return cast("Kept", found.facts)

    def take(self, key: str, default: object, why: str) -> object:
        """The value of ``key``, or ``default``; either way its origin is noted."""
        value = self.source.at(key)
        if type(value) is str and is_placeholder(value):  # most values are none: the call costs more than the type
            value = None
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
                return self.refuse(key, value, "true or false", default)

    def integer(self, key: str, default: int, why: str = "axolotl's default", least: int = 0, most: int = MOST) -> int:
        """An integer from ``least`` to ``most``."""
        value = self.take(key, default, why)
        number = as_integer(value)
        if number is None:
            return self.refuse(key, value, "an integer", default)
        if number < least:
            return self.refuse(key, value, f"at least {least}", default)
        if number > most:
            return self.refuse(key, value, f"at most {most}", default)
        return number

    def number(self, key: str, default: float, why: str = "axolotl's default") -> float:
        """An integer or a float."""
        value = self.take(key, default, why)
        try:
            if isinstance(value, (int, float, str)):
                return float(value)
        except (ValueError, OverflowError):
            pass
        return self.refuse(key, value, "a number", default)

    def text(self, key: str, default: str = "", why: str = "axolotl's default") -> str:
        """A string."""
        value = self.take(key, default, why)
        return value if isinstance(value, str) else self.refuse(key, value, "a string", default)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; a single string counts as a list of one."""
        value = self.take(key, (), "not given")
        if isinstance(value, str):
            return (value,)
        items: list[Any] = value if is_list(value) else []
        if value != () and not (items and all(isinstance(item, str) for item in items)) and value != []:
            return self.refuse(key, value, "a list of strings", ())
        return tuple(items)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of integers; a single one counts as a list of one."""
        value = self.take(key, (), "not given")
        items: list[Any] = value if is_list(value) else [] if value == () else [value]
        numbers = [number for item in items if (number := as_integer(item)) is not None]
        if len(numbers) < len(items):
            return self.refuse(key, value, "a list of integers", ())
        return tuple(numbers)

    def mapping(self, key: str) -> Mapping[str, object]:
        """A mapping; empty if absent."""
        value = self.take(key, {}, "not given")
        if not is_mapping(value):
            return self.refuse(key, value, "a mapping", {})
        return {str(name): item for name, item in value.items()}

    def refuse(self, key: str, value: object, expected: str, default: Kept) -> Kept:
        """Notes what ``key`` should have been, and goes on with ``default``."""
        if not is_placeholder(value):
            self.refused[key] = f"`{key}: {shown(value)}` must be {expected}; correct the value"
        return default


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
    text = text.replace("\n", " ") or '""'
    return text if len(text) <= 60 else text[:57] + "..."
