"""``advisor oom``: why a run died, and the next steps of the flowchart from what was really free."""

import sys

import click

from advisor.cli.crash_log import Death, read_death
from advisor.cli.crash_log.explain import by_message, comparison, on_what_was_free, what_happened
from advisor.cli.crash_log.guess import Guess, guess
from advisor.cli.crash_log.log import log_text
from advisor.cli.crash_log.next_steps import next_steps
from advisor.cli.options import config_at
from advisor.errors import InputError
from advisor.opening import Context, LoadedRun, open_run
from advisor.record import replace
from advisor.report.terminal import colored, draws, width
from advisor.run import Run
from advisor.session import RunOptions, Session, check_loaded, session_for


def oom_command(log: str, config: str | None, options: RunOptions) -> int:
    """0 if the death is explained; 2 if there is nothing to explain, or it cannot be read."""
    text = log_text(log)
    try:
        death = read_death(text)
        seen = None if death is None or options.gpus else guess(death, text)
    except InputError as error:
        error.file = log
        raise
    if death is None:
        raise InputError("no out-of-memory error found in the log", log, remedy="give the log with the traceback")
    if config is None:
        tell(log, death, (*by_message(death), *(seen.lines if seen else ()), *next_steps(death)))
        return 0
    session = session_for([config], options)
    opened = _opened_run(config, death, seen, session.context)
    guessed = seen.lines if seen and opened.run.hardware is seen.hardware else ()
    planned = death.cause == "gpu" and not death.too_large
    run, less = on_what_was_free(opened.run, death) if planned else (opened.run, "")
    lines = (*by_message(death), *guessed, *comparison(opened.run, death), *((less,) if less else ()))
    tell(log, death, lines if planned else (*lines, *next_steps(death)))
    if planned and run.hardware is not None:
        show(LoadedRun(run, opened.unknown_model), session)
    return 0


def tell(log: str, death: Death, lines: tuple[str, ...]) -> None:
    """What happened, and a line for each thing to know of it."""
    click.echo(f"{log}:{death.line}: {what_happened(death)}")
    for line in lines:
        click.echo(f"  {line}")


def _opened_run(config: str, death: Death, seen: Guess | None, context: Context) -> LoadedRun:
    """The run that died, on the hardware that is stated, or that the log shows."""
    document = config_at(config)
    opened = open_run(document, context)
    if opened.run.hardware is None and seen is not None:
        opened = open_run(document, replace(context, hardware=seen.hardware))
    if opened.run.hardware is None and death.cause == "gpu" and not death.too_large:
        raise InputError(
            "no GPUs are stated, and the log shows none", config, remedy='state them: --gpus "8x a100-80gb"'
        )
    return opened


def show(opened: LoadedRun, session: Session) -> None:
    """The plan, from what was really free."""
    from advisor.report import render_check
    from advisor.report.wording import VERDICT_RULES

    report = check_loaded(opened, session, speed=False).report
    kept = tuple(one for one in report.findings if one.step or one.rule in VERDICT_RULES)
    color = colored(sys.stdout)
    text = render_check([replace(report, findings=kept)], "full", color=color, width=width(), unicode=draws(sys.stdout))
    click.echo(f"\n{said(opened.run)}\n\n{text}", color=True)


def said(run: Run) -> str:
    """The hardware that the plan is made for."""
    assert run.hardware is not None
    return f"with {run.hardware.usable / 2**30:.1f} GiB for torch on each of {run.hardware.title}:"
