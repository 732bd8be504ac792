"""At which lengths a model is traced: three, on the same side of every window as the run's rows."""

from collections.abc import Iterator, Mapping
from typing import cast

from advisor.util import regex

STEP = 1024
"""A multiple of the chunks in which linear attention and state spaces work."""
WINDOW = regex(r"window|attention_chunk_size|local_attention")


def windows_of(config: Mapping[str, object]) -> tuple[int, ...]:
    """Windows and attention chunks that a config names, its sections included."""
    return tuple(sorted(set(_each_window(config))))


def _each_window(config: Mapping[str, object]) -> Iterator[int]:
    """The numbers under keys that speak of windows."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _each_window(cast("Mapping[str, object]", value))
        elif isinstance(value, int) and not isinstance(value, bool) and value > 1 and WINDOW.search(key):
            yield value


def lengths_for(beyond: int, windows: tuple[int, ...]) -> tuple[int, ...]:
    """Three lengths above ``beyond`` and below the next window."""
    ceiling = next((window for window in windows if window > beyond), None)
    start = -(-beyond // STEP) * STEP
    if ceiling is not None and start + 4 * STEP >= ceiling:
        step = max(1, (ceiling - 1 - beyond) // 4)
        return tuple(beyond + times * step for times in (1, 2, 4))
    return tuple(start + times * STEP for times in (1, 2, 4))
