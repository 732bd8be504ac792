"""``advisor oom``: why a run died, and the next steps of the flowchart from what was really free."""

from collections.abc import Iterable, Iterator

import click

from advisor.cli.crash_log.explained import Dead, Explained, dead, with_config, without_config
from advisor.cli.crash_log.log import log_text
from advisor.cli.crash_log.screen import headline, remedies, sentences, way_to_a_config
from advisor.cli.options import config_at
from advisor.engine.finding import Report
from advisor.hardware import Hardware
from advisor.report.style import Style
from advisor.report.terminal import own_style
from advisor.session import RunOptions, session_for
from advisor.util import GIB


def oom_command(log: str, config: str | None, options: RunOptions) -> int:
    """0 if the death is explained; 2 if there is nothing to explain, or it cannot be read."""
    found = dead(log_text(log), log, stated=options.gpus is not None)
    if config is None:
        said = without_config(found)
    else:
        said = with_config(found, config_at(config), session_for([config], options).answering)
    echo(_blocks(found, said, own_style(), asks=config is None))
    return 0


def echo(blocks: Iterable[Iterable[str]]) -> None:
    """Blocks of lines, an empty line between two."""
    texts = ("\n".join(block) for block in blocks)
    click.echo("\n\n".join(filter(None, texts)), color=True)


def _blocks(found: Dead, said: Explained, style: Style, *, asks: bool) -> Iterator[Iterable[str]]:
    """What died, what to type, what helps, and what the log tells besides; ``asks``: for the config."""
    yield headline(found.death, style)
    yield sentences((said.first,), style)
    if asks:
        yield way_to_a_config(found.log, found.death, style)
    if said.advice is not None:
        yield remedies(said.advice, style)
    if said.report is not None and said.hardware is not None:
        yield ways_out(said.report, said.hardware, style)
    yield sentences(said.told, style)


def ways_out(report: Report, hardware: Hardware, style: Style) -> Iterator[str]:
    """With which edits the run fits what was really free."""
    from advisor.report import render_check
    from advisor.report.to_write import to_write_lines

    yield from style.prose(f"With {hardware.usable / GIB:.1f} GiB for torch on each of {hardware.title}:")
    yield ""
    yield render_check([report], "full", color=style.color, width=style.width, unicode=style.unicode)
    if report.answer is not None and (lines := list(to_write_lines(report.answer, style.width))):
        yield from ("", *lines)
