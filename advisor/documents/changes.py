"""Where a value lies in a document, and what is to become of it."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from advisor.errors import InputError
from advisor.record import record

Path = tuple[str | int, ...]
MISSING: Any = object()


class PatchError(InputError):
    """A change that cannot be made, or not written so that the file would hold exactly the values meant."""


@record
class Span:
    """A place in a file, its end exclusive.

    ``start`` and ``end``: byte offsets on disk, BOM included. Lines and columns (in characters) are 1-based.
    """

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


@record
class Edit:
    """Bytes ``start`` to ``end`` of ``file`` give way to ``text``; with ``create`` the file is new."""

    file: str
    start: int
    end: int
    text: str
    create: bool = False


@record
class Set:
    """Give ``path`` this value; mappings that lack on the way are created.

    A new key goes behind its sibling ``after``, or to the end of its mapping.
    """

    path: str | Path
    value: Any
    after: str | None = None


@record
class Remove:
    """Take ``path`` out. Nothing happens where it is absent."""

    path: str | Path


@record
class Rename:
    """Call the key at ``path`` by another name, in its place. Nothing happens where it is absent."""

    path: str | Path
    key: str


Change = Set | Remove | Rename


def as_path(path: str | Path) -> Path:
    """``"plugins.0"`` -> ``("plugins", 0)``. A tuple is taken literally, for keys that hold dots."""
    return dotted(path) if isinstance(path, str) else path


@lru_cache(maxsize=4096)
def dotted(path: str) -> Path:
    """The parts of a dotted path. A run asks for the same few hundred keys each time that it is built."""
    parts = path.split(".") if path else []
    return tuple(int(part) if part.isascii() and part.isdecimal() else part for part in parts)


def child(container: Any, part: str | int) -> Any:
    """The value under one part of a path, or ``MISSING``; a number also finds a key of digits."""
    if isinstance(container, Mapping):
        values = cast("Mapping[Any, Any]", container)
        return values.get(part, values.get(str(part), MISSING) if isinstance(part, int) else MISSING)
    if isinstance(container, list) and isinstance(part, int):
        items = cast("list[Any]", container)
        return items[part] if 0 <= part < len(items) else MISSING
    return MISSING


def value_at(container: Any, path: str | Path) -> Any:
    """The value at ``path``, or ``MISSING``."""
    is_plain: bool = type(container) is dict
    if is_plain and type(path) is str and path.isidentifier():
        return container.get(path, MISSING)
    for part in as_path(path):
        # Nearly always a key of a plain mapping: asked for thousands of times in one plan.
        is_plain = type(container) is dict
        container = container.get(part, MISSING) if is_plain and type(part) is str else child(container, part)
        if container is MISSING:
            break
    return container


def applied(values: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """``values`` after ``changes``, in order. Only what lies on the paths is copied.

    Removing the last key of a mapping leaves ``{}``. ``PatchError`` where a path leads through a scalar, or
    past the end of a list.
    """
    result = dict(values)
    for change in changes:
        path = as_path(change.path)
        match change:
            case Set():
                result = _set(result, path, change)
            case Remove() | Rename():
                if path and value_at(result, path) is not MISSING:
                    result = _without(result, path, change.key if isinstance(change, Rename) else None)
    return result


def _set(container: Any, path: Path, change: Set) -> Any:
    """A copy of ``container`` in which the rest ``path`` of the change's path holds its value."""
    if not path:
        return plain(change.value)
    part, rest = path[0], path[1:]
    if container is None or container is MISSING:
        container = [] if part == 0 and isinstance(part, int) else {}
    old = child(container, part)
    new = _set(old, rest, change) if rest else plain(change.value)
    if isinstance(container, Mapping):
        mapping = cast("Mapping[Any, Any]", container)
        key = str(part) if isinstance(part, int) and part not in mapping and str(part) in mapping else part
        if key in mapping or rest or change.after not in mapping:
            return {**mapping, key: new}
        return _put_after(mapping, change.after, key, new)
    if isinstance(container, list) and isinstance(part, int):
        items = cast("list[Any]", container)
        if part <= len(items):
            return [*items[:part], new, *items[part + 1 :]]
    raise PatchError(f"`{_dotted(change.path)}` cannot be set: `{part}` has no place in {_kind(container)}")


def _put_after(mapping: Mapping[Any, Any], after: str | None, key: str | int, value: Any) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for name, old in mapping.items():
        result[name] = old
        if name == after:
            result[key] = value
    return result


def _without(container: Any, path: Path, key: str | None) -> Any:
    """A copy without the value at ``path``, or with its key called ``key``."""
    part, rest = path[0], path[1:]
    if isinstance(container, list):
        items = cast("list[Any]", container)
        if not rest and key is not None:
            raise PatchError(f"item {part} of a list has no key to rename")
        index = int(part)
        return [*items[:index], *([_without(items[index], rest, key)] if rest else []), *items[index + 1 :]]
    mapping = cast("Mapping[Any, Any]", container)
    name = part if part in mapping else str(part)
    if rest:
        return {**mapping, name: _without(mapping[name], rest, key)}
    if key is None:
        return {each: value for each, value in mapping.items() if each != name}
    return {key if each == name else each: value for each, value in mapping.items() if each != key or each == name}


def plain(value: Any) -> Any:
    """Mappings as dict and sequences as list, all the way down."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("list[Any]", value)]
    return value


def _dotted(path: str | Path) -> str:
    return ".".join(map(str, as_path(path)))


def _kind(value: Any) -> str:
    return f"a list of {len(cast('list[Any]', value))}" if isinstance(value, list) else f"`{value!r}`"
