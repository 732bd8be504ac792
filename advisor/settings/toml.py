"""The file that holds the settings: which one it is, its tables, and the lines of its keys."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from advisor.errors import InputError
from advisor.record import record
from advisor.util import MAX_BYTES, read_start, regex, toml_library

Table = dict[str, object]
Key = tuple[str, ...]


@record(eq=False)
class Source:
    """A file of settings: its path, as it is shown and as it is; its text; and the table that holds them."""

    shown: str
    folder: Path
    text: str
    table: Key

    def line_of(self, key: Key) -> int:
        """The 1-based line of a key, or of the innermost table around it; 0 if there is none."""
        places = [(path, line) for path, line in _key_lines(self.text) if (self.table + key)[: len(path)] == path]
        return max(places, key=lambda place: len(place[0]), default=((), 0))[1]


def nearest_settings(folder: Path) -> tuple[Source, Table] | None:
    """The settings of the nearest folder, upwards; ``advisor.toml`` goes before ``pyproject.toml``."""
    for ancestor in (folder, *folder.parents):
        own, shared = ancestor / "advisor.toml", ancestor / "pyproject.toml"
        if own.is_file():
            source = Source(shown(own), ancestor, read_text(own), ())
            return source, parse_toml(source)
        if shared.is_file() and _mentions_advisor(shared):
            source = Source(shown(shared), ancestor, read_text(shared), ("tool", "advisor"))
            tool = parse_toml(source).get("tool")
            table = cast("Table", tool).get("advisor") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                return source, cast("Table", table)
    return None


def _mentions_advisor(path: Path) -> bool:
    """Whether a ``pyproject.toml`` may hold settings; one that cannot be read is somebody else's."""
    try:
        return b"tool.advisor" in read_start(path, MAX_BYTES)
    except OSError:
        return False


def shown(path: Path) -> str:
    """The path from the working directory if it lies below, else in full."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def read_text(path: Path) -> str:
    """The file's text, or an ``InputError``."""
    try:
        return read_start(path, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"the settings cannot be read: {reason}"
        raise InputError(message, shown(path), remedy="fix the file, or pass --isolated") from error


def parse_toml(source: Source, remedy: str = "fix the TOML, or pass --isolated") -> Table:
    """The file's tables; a syntax error is an ``InputError`` at its line."""
    toml = toml_library()
    try:
        return toml.loads(source.text)
    except toml.TOMLDecodeError as error:
        message = "not valid TOML: " + str(error).partition(" (at ")[0]
        # Without a place the error is at the end of the document.
        place = {"line": len(source.text.splitlines())}
        place |= {word: int(number) for word, number in re.findall(r"(line|column) (\d+)", str(error))}
        raise InputError(message, source.shown, place["line"], place.get("column", 0), remedy) from error
    except RecursionError:
        raise InputError("not valid TOML: nested too deeply", source.shown, remedy=remedy) from None
    except ValueError as error:  # of Python's own: a number of more than 4300 digits
        raise InputError("a number has too many digits", source.shown, _long_number(source.text), 0, remedy) from error


def _long_number(text: str) -> int:
    """The first line with a number that Python does not read; 0 without one."""
    rows = enumerate(text.splitlines(), 1)
    return next((line for line, row in rows if re.search(r"[\d_]{4301}", row)), 0)


WORD = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
HEADER = regex(rf"\s*\[\[?\s*({WORD}(?:\s*\.\s*{WORD})*)\s*\]")
ASSIGNMENT = regex(rf"\s*({WORD}(?:\s*\.\s*{WORD})*)\s*=")


def _key_lines(text: str) -> Iterator[tuple[Key, int]]:
    """The full key of each table header and assignment of a TOML text, with its line."""
    table: Key = ()
    for line, content in enumerate(text.splitlines(), 1):
        if header := HEADER.match(content):
            table = parts_of(header[1])
            yield table, line
        elif assignment := ASSIGNMENT.match(content):
            yield table + parts_of(assignment[1]), line


def parts_of(key: str) -> Key:
    """``tool."a.b".c`` -> (tool, a.b, c)."""
    return tuple(word.strip("\"'") for word in re.findall(WORD, key))
