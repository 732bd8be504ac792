"""``advisor estimate``: 0 fits, tight or unknown model; 1 does not fit; 2 could not run."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from advisor.cli.options import config_at
from advisor.cli.output import check_output
from advisor.cli.seen_here import with_seen
from advisor.documents import write_all
from advisor.errors import InputError
from advisor.opening import open_run
from advisor.progress import doing, shown
from advisor.record import record, replace
from advisor.report.terminal import colored, draws, own_style, width
from advisor.run import Run
from advisor.session import CheckedRun, RunOptions, check_config, session_for
from advisor.session.amounts import parse_tokens

if TYPE_CHECKING:
    from advisor.hardware import Gpu
    from advisor.hardware.prices import Price


@record
class EstimateOptions:
    """What ``advisor estimate`` alone was asked."""

    output: str | None = None
    format: str = "full"
    ledger: bool = False
    tokens: str | None = None
    price: float | None = None
    prices: str | None = None
    largest: str | None = None
    timeline: str | None = None


def estimate_command(path: str, options: RunOptions, asked: EstimateOptions) -> int:
    """``advisor estimate``: 0 fits, tight or unknown model; 1 does not fit; 2 could not run."""
    tokens = None if asked.tokens is None else parse_tokens(asked.tokens)
    check_output(asked.output)
    check_output(asked.timeline)
    session = session_for([path], replace(options, details=True), detects=True)
    config = config_at(path)
    if asked.largest is not None:
        from advisor.cli.max_value import show
        from advisor.session.largest import largest

        opened = open_run(config, session.context)
        _check_hardware(opened.run, path)
        return show(largest(asked.largest, opened, session.options_of(opened)), asked.format, own_style())
    with shown(), doing(path):
        found = check_config(config, session, speed=False)
    _check_hardware(found.run, path)
    from advisor.report import render_estimate
    from advisor.report.wording import step_rows

    report = with_seen(found.report, found.run, isolated=options.isolated)
    if asked.format == "html":
        from advisor.cli.check import with_timeline

        report = with_timeline(report, found)
    text = render_estimate(
        report,
        asked.format,
        run=found.run,
        rows=step_rows(found.report),
        color=not asked.output and colored(sys.stdout),
        width=width(),
        unicode=draws(sys.stdout),
        ledger=asked.ledger,
        tokens=tokens,
        price=price_of(asked, found.run, session.context.own),
    )
    if asked.timeline is not None:
        text += drawn(found, asked.timeline, asked.format)
    if asked.output:
        write_all({asked.output: (text + "\n").encode()})
    else:
        click.echo(text, color=True)
    return 1 if found.report.verdict == "does-not-fit" else 0


def price_of(asked: EstimateOptions, run: Run, own: "Mapping[str, Gpu]") -> "Price | None":
    """What a GPU-hour costs: as stated, else as the file of prices has it for the run's card, else as the table."""
    from advisor.cli.prices import read_prices
    from advisor.hardware.prices import Price, Prices

    if asked.price is not None:
        return Price(asked.price)
    by_card = read_prices(asked.prices, own) if asked.prices is not None else None
    return Prices(by_card=by_card).of(run.hardware.gpu.id) if run.hardware is not None else None


def drawn(found: CheckedRun, file: str, format: str) -> str:  # noqa: A002
    """Writes the timeline; as blocks for the screen. ``InputError`` where no tape covers the run."""
    from advisor.allocations.coverage import uncovered

    run = found.run
    if missing := ", ".join(uncovered(run)):
        path = run.config.file
        raise InputError(f"there is no timeline of this run: not covered are {missing}", path, remedy="leave it out")
    from advisor.allocations.timeline import timeline
    from advisor.report.timeline import blocks, svg

    try:
        made, hardware = timeline(run), run.hardware
    except Exception as error:  # what no tape has after all
        message = f"there is no timeline of this run: its step cannot be replayed ({error})"
        raise InputError(message, run.config.file, remedy="leave it out") from error
    usable = hardware.usable if hardware is not None else 0
    title = f"{run.base_model}: {found.report.summary}; {found.report.hardware}"
    write_all({file: svg(made, title, usable).encode()})
    return "" if format == "json" else "\n\n" + "\n".join([*blocks(made, own_style()), f"  drawn in {file}"])


def _check_hardware(run: Run, path: str) -> None:
    """Without cards there is nothing to compare with: an ``InputError``."""
    if run.hardware is None:
        raise InputError("no GPUs are stated, and none were found", path, remedy='state them: --gpus "8x a100-80gb"')
