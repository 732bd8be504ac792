"""``advisor oom``: why a run died, and the next steps of the flowchart from what was really free."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import click

from advisor.cli.crash_log import Death, read_death
from advisor.cli.crash_log.explain import card_of, comparison, on_what_was_free, what_happened
from advisor.cli.options import config_at
from advisor.errors import InputError
from advisor.hardware import Hardware
from advisor.opening import Context, Opened, open_run
from advisor.report.terminal import colored, draws, width
from advisor.run import Run
from advisor.session import RunOptions, Session, examined, session_for

MOST_BYTES = 64 << 20
"""Of a log, its end: a run dies last."""
RANK = re.compile(r"\[(?:rank|default)(\d+)\]:|\brank[: ]+(\d+)\b", re.IGNORECASE)


def oom_command(log: str, config: str, options: RunOptions) -> int:
    """0 if the death is explained; 2 if there is nothing to explain, or it cannot be read."""
    text = log_text(log)
    death = read_death(text)
    if death is None:
        raise InputError("tells of no death for want of memory", log, remedy="give the log with the traceback")
    session = session_for([config], options)
    opened = opened_run(config, death, text, session.context)
    place = f"{log}:{death.line}"
    click.echo(f"{place}: {what_happened(death)}")
    for line in comparison(opened.run, death):
        click.echo(f"  {line}")
    run = on_what_was_free(opened.run, death)
    if run.hardware is not None and death.cause == "gpu":
        show(Opened(run, opened.unknown_model), session)
    return 0


def log_text(log: str) -> str:
    """The end of the log."""
    try:
        if log == "-":
            return sys.stdin.buffer.read()[-MOST_BYTES:].decode(errors="replace")
        with Path(log).open("rb") as stream:
            stream.seek(max(0, Path(log).stat().st_size - MOST_BYTES))
            return stream.read().decode(errors="replace")
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", log, remedy="name the log of the run") from error


def opened_run(config: str, death: Death, log: str, context: Context) -> Opened:
    """The run that died, on the hardware that is stated, or that the log shows."""
    document = config_at(config)
    opened = open_run(document, context)
    if opened.run.hardware is None and (found := seen(death, log)):
        opened = open_run(document, replace(context, hardware=found))
    if opened.run.hardware is None and death.cause == "gpu":
        raise InputError("no GPUs are stated, and the log shows none", config, remedy='say them: --gpus "8x a100-80gb"')
    return opened


def seen(death: Death, log: str) -> Hardware | None:
    """The card that the log shows, once for each rank in it."""
    ranks = {int(first or second) for first, second in RANK.findall(log)}
    return card_of(death, 1 + max(ranks, default=death.gpu or 0))


def show(opened: Opened, session: Session) -> None:
    """The plan, from what was really free."""
    from advisor.report import render_check

    report = examined(opened, session, speed=False).report
    kept = tuple(one for one in report.findings if one.step or one.rule in {"does-not-fit", "tight-fit"})
    color = colored(sys.stdout)
    text = render_check([replace(report, findings=kept)], "full", color=color, width=width(), unicode=draws(sys.stdout))
    click.echo(f"\n{said(opened.run)}\n\n{text}", color=True)


def said(run: Run) -> str:
    """The hardware that the plan is made for."""
    assert run.hardware is not None
    return f"with {run.hardware.usable / 2**30:.1f} GiB for torch on each of {run.hardware.title}:"
