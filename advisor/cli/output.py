"""Where a report goes: the terminal, or files."""

import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any

import click

from advisor.cli.main import colored
from advisor.cli.options import Asked
from advisor.documents import write_all
from advisor.engine.finding import Report
from advisor.errors import InputError


def targets(formats: Sequence[str], output: str | None) -> list[tuple[str, str | None]]:
    """Each format with its file, None for the terminal. ``InputError`` for an unknown one, or a file named twice."""
    from advisor.report import FORMATS

    found: list[tuple[str, str | None]] = []
    for wanted in formats:
        name, _, file = wanted.partition("=")
        if name not in FORMATS:
            raise InputError(f"unknown format `{name}`", remedy=f"choose one of {', '.join(FORMATS)}")
        target = file or output
        if target and any(target == other for _, other in found):
            raise InputError("two formats for one file", target, remedy="give each its own: FORMAT=FILE")
        found.append((name, target))
    return found


def say(reports: Sequence[Report], asked: Asked, given: dict[str, Any], *, to_stderr: bool = False) -> None:
    """The reports, in every format that is asked for."""
    from advisor.report import check_pieces

    stream = sys.stderr if to_stderr else sys.stdout
    for name, target in targets(asked.formats, given.get("output")):
        color = not target and colored(stream)
        pieces = check_pieces(reports, name, color=color, width=width(), unicode=draws(stream))
        if target:
            write_all({target: (piece.encode() for piece in chain(pieces, "\n"))})
            continue
        said = False
        for piece in pieces:
            click.echo(piece, err=to_stderr, color=True, nl=False)
            said = said or bool(piece)
        click.echo(err=to_stderr, nl=said)


def width() -> int:
    """Columns to keep to: the terminal's, between 60 and 100."""
    if not sys.stdout.isatty():
        return 80
    import shutil

    return min(100, max(60, shutil.get_terminal_size((80, 24)).columns))


def draws(stream: Any) -> bool:
    """Whether the stream can show block characters."""
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") in {"utf8", "utf16"}
