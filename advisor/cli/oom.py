"""``advisor oom``: why a run died, and the next steps of the flowchart from what was really free."""

from collections.abc import Iterable, Iterator

import click

from advisor.cli.crash_log import Death, read_death
from advisor.cli.crash_log.explain import by_message, comparison, of_pieces, on_what_was_free, where
from advisor.cli.crash_log.guess import Guess, guess
from advisor.cli.crash_log.log import log_text
from advisor.cli.crash_log.next_steps import advice, first_of_all
from advisor.cli.crash_log.screen import headline, remedies, sentences, way_to_a_config
from advisor.cli.options import config_at
from advisor.errors import InputError
from advisor.opening import Context, LoadedRun, open_run
from advisor.record import replace
from advisor.report.style import Style
from advisor.report.terminal import own_style
from advisor.session import RunOptions, Session, check_loaded, session_for
from advisor.util import GIB


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
    style = own_style()
    if config is None:
        echo(_without_config(log, death, seen, style))
        return 0
    session = session_for([config], options).answering
    opened = _opened_run(config, death, seen, session.context)
    guessed = seen.lines if seen and opened.run.hardware is seen.hardware else ()
    told = (where(log, death), *comparison(opened.run, death), *by_message(death), *guessed)
    if death.cause != "gpu" or death.too_large:
        echo((headline(death, style), remedies(advice(death), style), sentences(told, style)))
        return 0
    run, less = on_what_was_free(opened.run, death)
    pieces = sentences((of_pieces(opened.run, death),), style)
    ways = ways_out(LoadedRun(run, opened.unknown_model), session, style)
    echo((headline(death, style), pieces, ways, sentences((*told, less), style)))
    return 0


def echo(blocks: Iterable[Iterable[str]]) -> None:
    """Blocks of lines, an empty line between two."""
    texts = ("\n".join(block) for block in blocks)
    click.echo("\n\n".join(filter(None, texts)), color=True)


def _without_config(log: str, death: Death, seen: Guess | None, style: Style) -> Iterator[Iterable[str]]:
    """What died, what to type, what usually helps, and what the log tells besides."""
    yield headline(death, style)
    yield sentences((first_of_all(death),), style)
    yield way_to_a_config(log, death, style)
    yield remedies(advice(death), style)
    yield sentences((where(log, death), *by_message(death), *(seen.lines if seen else ())), style)


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


def ways_out(opened: LoadedRun, session: Session, style: Style) -> Iterator[str]:
    """With which edits the run fits what was really free: the findings of its plan."""
    from advisor.engine.ways_out import without_gpus
    from advisor.report import render_check
    from advisor.report.to_write import to_write_lines
    from advisor.report.wording import VERDICT_RULES

    hardware = opened.run.hardware
    if hardware is None:
        return
    # A run that died had started: what else could be said of its config is not asked here.
    given = ("--gpus", hardware.spec, *without_gpus(session.options.given))
    session = replace(session, options=replace(session.options, select=tuple(VERDICT_RULES), given=given))
    report = check_loaded(opened, session, speed=False).report
    kept = tuple(one for one in report.findings if one.step or one.rule in VERDICT_RULES)
    yield from style.prose(f"With {hardware.usable / GIB:.1f} GiB for torch on each of {hardware.title}:")
    yield ""
    shown = [replace(report, findings=kept)]
    yield render_check(shown, "full", color=style.color, width=style.width, unicode=style.unicode)
    if report.answer is not None and (lines := list(to_write_lines(report.answer, style.width))):
        yield from ("", *lines)
