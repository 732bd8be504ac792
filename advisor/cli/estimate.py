"""``advisor estimate``: 0 fits, tight or unknown model; 1 does not fit; 2 could not run."""

import sys
from dataclasses import replace
from typing import Any

import click

from advisor.cli.main import colored
from advisor.cli.options import asked_of, documents_of, settings_for
from advisor.cli.output import draws, width
from advisor.documents import write_all
from advisor.engine.check import check_run
from advisor.errors import InputError
from advisor.opening import open_run
from advisor.progress import doing, shown


def estimate_command(path: str, **given: Any) -> int:
    """``advisor estimate``: 0 fits, tight or unknown model; 1 does not fit; 2 could not run."""
    settings = settings_for([path], given)
    asked = asked_of({**given, "formats": ()}, settings)
    context = replace(asked.context, detects=True)
    document = documents_of([path])
    if not document:
        raise InputError("is not an axolotl config: it has no `base_model`", path, remedy="name an axolotl YAML")
    if isinstance(document[0], InputError):
        raise document[0]
    with shown(), doing(path):
        opened = open_run(document[0], context)
    if opened.run.hardware is None:
        raise InputError("no GPUs are stated, and none were found", path, remedy='say them: --gpus "8x a100-80gb"')
    report = check_run(opened, replace(asked.options, speed=False))
    from advisor.report import ladder_of, render_estimate

    target = given["output"]
    text = render_estimate(
        report,
        given["format_"],
        ladder=ladder_of(report),
        color=not target and colored(sys.stdout),
        width=width(),
        unicode=draws(sys.stdout),
        ledger=given["ledger"],
    )
    if target:
        write_all({target: (text + "\n").encode()})
    else:
        click.echo(text, color=True)
    return 1 if report.verdict == "does-not-fit" else 0
