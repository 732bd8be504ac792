"""What a library says -> which key of our file it speaks of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.documents import Path
from advisor.util import is_list, is_mapping, regex

Values = Mapping[str, Any]
WORD = regex(r"[A-Za-z][\w.]*\w")


def pointed(values: Values, problem: Values) -> str:
    """The dotted path of the value that is meant; empty where none can be told."""
    return ".".join(map(str, _path_at(values, problem) or named(values, problem["message"])))


def _path_at(values: Values, problem: Values) -> Path:
    """The value at pydantic's ``loc``, or the nearest above it. Names of types in it are skipped.

    DeepSpeed has a model for each section and axolotl one for each dataset, so ``loc`` may start in one: in that which
    has the model's name (``DeepSpeedBF16Config``), and where the value is the one that pydantic was given.
    """
    if whole := followed(values, (), problem["at"]):
        return whole
    inside = [followed(values, start, problem["at"]) for start in starts(values)]
    return max(filter(None, inside), key=lambda path: likelihood(values, path, problem), default=())


def likelihood(values: Values, path: Path, problem: Values) -> tuple[bool, bool]:
    """By its value, then by its section's name."""
    return at(values, path) == problem["given"], str(path[0]) in problem["model"].lower()


def starts(values: Values) -> Iterator[Path]:
    """The sections, and the items of lists of mappings."""
    for key, value in values.items():
        if is_mapping(value):
            yield (key,)
        elif is_list(value):
            yield from ((key, number) for number, item in enumerate(value) if is_mapping(item))


def followed(values: Values, start: Path, parts: Sequence[str | int]) -> Path:
    """As far from ``start`` as the parts lead; nothing if they lead nowhere."""
    path, value = start, at(values, start)
    for part in parts:
        if has(value, part):
            path, value = (*path, part), value[part]
    return path if path != start else ()


def at(values: Any, path: Path) -> Any:
    """The value at a path that is there."""
    for part in path:
        values = values[part]
    return values


def has(value: Any, part: str | int) -> bool:
    """Whether there is such a key, or such an item."""
    if is_list(value):
        return isinstance(part, int) and part < len(value)
    return is_mapping(value) and part in value


def named(values: Values, message: str) -> Path:
    """The key that a message names. One with an underscore or a dot comes first: other words may be mere prose."""
    known: dict[str, Path] = {}
    for path in paths(values):
        known.setdefault(".".join(path), path)
        known.setdefault(path[-1], path)
    words = [word.removeprefix("cfg.") for word in WORD.findall(message)]
    words.sort(key=lambda word: not re.search(r"[_.]", word))
    return next((known[spelt] for word in words for spelt in (word, word.lower()) if spelt in known), ())


def paths(values: Values, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path that leads to a key, the outermost first."""
    for key in values:
        yield (*above, str(key))
    for key, value in values.items():
        if is_mapping(value):
            yield from paths(value, (*above, str(key)))
