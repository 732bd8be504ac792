"""``advisor accuracy``: estimates compared with measured runs."""

import sys

import click

from advisor.accuracy.columns import WIDEST
from advisor.accuracy.judging import judged
from advisor.accuracy.own import own_runs
from advisor.accuracy.report import accuracy
from advisor.accuracy.screen import as_json, text
from advisor.errors import InputError
from advisor.report.terminal import width
from advisor.streams import is_terminal


def accuracy_command(runs: str | None, format_: str) -> int:
    """``advisor accuracy``: the published runs, or those of a file."""
    cases = own_runs(runs) if runs else None
    if cases == []:
        raise InputError("has no measured run of a GPU", runs or "", remedy="measure some: tests/gpu/README.md")
    report = accuracy(judged(cases), published=cases is None)
    click.echo(as_json(report) if format_ == "json" else text(report, _columns()))
    return 0


def timing_command(runs: str | None, format_: str) -> int:
    """``advisor accuracy --time``: the published figures."""
    if runs:
        raise InputError("--time compares published runs only", remedy="drop --runs or --time")
    from advisor.accuracy import timing, timing_screen

    report = timing.timing()
    click.echo(timing_screen.as_json(report) if format_ == "json" else timing_screen.text(report, _columns()))
    return 0


def _columns() -> int:
    """Those of the terminal; in a pipe all that the tables want, so that a line is a run."""
    return width() if is_terminal(sys.stdout) else WIDEST
