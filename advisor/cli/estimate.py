"""``advisor estimate``: 0 fits, tight or unknown model; 1 does not fit; 2 could not run."""

import sys

import click

from advisor.cli.options import config_at
from advisor.documents import write_all
from advisor.errors import InputError
from advisor.progress import doing, shown
from advisor.report.terminal import colored, draws, width
from advisor.session import RunOptions, examine, session_for


def estimate_command(path: str, options: RunOptions, *, output: str | None, format_: str, ledger: bool) -> int:
    """``advisor estimate``: 0 fits, tight or unknown model; 1 does not fit; 2 could not run."""
    session = session_for([path], options, detects=True)
    config = config_at(path)
    with shown(), doing(path):
        found = examine(config, session, speed=False)
    if found.run.hardware is None:
        raise InputError("no GPUs are stated, and none were found", path, remedy='state them: --gpus "8x a100-80gb"')
    from advisor.report import render_estimate
    from advisor.report.wording import step_rows

    text = render_estimate(
        found.report,
        format_,
        rows=step_rows(found.report),
        color=not output and colored(sys.stdout),
        width=width(),
        unicode=draws(sys.stdout),
        ledger=ledger,
    )
    if output:
        write_all({output: (text + "\n").encode()})
    else:
        click.echo(text, color=True)
    return 1 if found.report.verdict == "does-not-fit" else 0
