"""Where a report goes: the terminal, or files."""

import sys
from collections.abc import Sequence
from itertools import chain

import click

from advisor.documents import write_all
from advisor.documents.repository import leads_out
from advisor.engine.finding import LEVELS, Report
from advisor.errors import InputError
from advisor.report.style import Detail
from advisor.report.terminal import colored, draws, width
from advisor.session import Session


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
        check_output(target)
        found.append((name, target))
    return found


def check_output(target: str | None) -> None:
    """A report is not written through a link of a checkout to what lies outside of it: an ``InputError``."""
    if target and leads_out(target):
        raise InputError("is a link out of its repository", target, remedy="name the file that it leads to")


def say(
    reports: Sequence[Report],
    session: Session,
    output: str | None = None,
    *,
    detail: Detail = "normal",
    to_stderr: bool = False,
) -> None:
    """The reports, in every format that is asked for."""
    from advisor.report import check_pieces

    stream = sys.stderr if to_stderr else sys.stdout
    for name, target in targets(session.formats, output):
        color = not target and colored(stream)
        drawn = draws(stream)
        pieces = check_pieces(reports, name, color=color, width=width(), unicode=drawn, detail=detail)
        if target:
            write_all({target: (piece.encode() for piece in chain(pieces, "\n"))})
            continue
        said = False
        for piece in pieces:
            click.echo(piece, err=to_stderr, color=True, nl=False)
            said = said or bool(piece)
        click.echo(err=to_stderr, nl=said)


def exit_code(
    reports: Sequence[Report], errors: Sequence[InputError], session: Session, *, exit_zero: bool = False
) -> int:
    """2 beats 1 beats 0."""
    if any(not error.note for error in errors):
        return 2
    counted = LEVELS[: LEVELS.index(session.fail_on) + 1]
    found = any(finding.level in counted for report in reports for finding in report.findings)
    return 1 if found and not exit_zero else 0
