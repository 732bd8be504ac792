"""``advisor hardware``: 0 some cards would do, 1 none, 2 could not run."""

import re
from collections.abc import Callable, Sequence

import click

from advisor.cli.estimate import parse_tokens
from advisor.cli.options import config_at
from advisor.cli.prices import read_prices
from advisor.engine.cards import Row, all_gpus
from advisor.engine.check import planner
from advisor.engine.choice import Wanted, chosen_rows, every_row
from advisor.engine.hardware_that_fits import on_hardware
from advisor.errors import InputError
from advisor.hardware import Gpu, gpu_named, parse_hardware
from advisor.opening import open_run
from advisor.progress import doing, shown
from advisor.record import record, replace
from advisor.report import cards
from advisor.report.cards import Offer
from advisor.report.terminal import own_style
from advisor.report.time import steps_of
from advisor.run import Run
from advisor.session import RunOptions, Session, session_for
from advisor.streams import aside
from advisor.util import regex

MOST_SHOWN = 12
MOST_PLANNED = 24
"""About 4 s of CPU."""
FEW_PLANNED = 10
"""Plans where cards are shown next to other things: about a second of CPU."""
ANYWHERE = "1x b200"
"""Where a run is read whose own cards are unknown."""
DURATION = regex(r"(\d+(?:\.\d+)?)\s*([hd])", re.IGNORECASE)
HOURS = {"h": 1.0, "d": 24.0}


@record
class HardwareOptions:
    """What ``advisor hardware`` was asked."""

    cards: str | None = None
    tokens: str | None = None
    price: float | None = None
    prices: str | None = None
    within: str | None = None
    under: float | None = None
    all: bool = False
    format: str = "full"


def hardware_command(path: str, options: RunOptions, asked: HardwareOptions) -> int:
    """``advisor hardware``: 0 some cards would do, 1 none, 2 could not run."""
    gpus = chosen(asked.cards)
    tokens = None if asked.tokens is None else parse_tokens(asked.tokens)
    within = None if asked.within is None else parse_hours(asked.within)
    prices = read_prices(asked.prices) if asked.prices else {}
    session = session_for([path], options, detects=False)
    with shown(), doing(path):
        run = opened(path, session)
        check_limits(run, asked)
        offers = chosen_offers(
            run,
            gpus,
            session,
            lambda row: offer_of(row, tokens, prices.get(row.hardware.gpu.id, asked.price)),
            accepts=lambda offer: is_within(offer, within, asked.under),
            all_=asked.all,
        )
    if not offers:
        aside(f"{path}: no card of the catalogue would do")
        return 1
    notes = list(cards.notes_of(offers))
    match asked.format:
        case "json":
            click.echo(cards.as_json(path, offers))
        case "markdown":
            click.echo(cards.markdown(offers, notes))
        case "html":
            from advisor.report.html_page import hardware

            click.echo(hardware(path, cards.entries(offers), notes))
        case _:
            style = own_style()
            click.echo(cards.text(offers, notes, style), color=True)
    return 0


def opened(path: str, session: Session) -> Run:
    """The run on one large card, whatever the config says, so that it can be moved to others."""
    context = session.context
    found = open_run(config_at(path), replace(context, gpus=context.gpus or context.default_gpus or ANYWHERE))
    if found.run.model is None or found.run.unreadable:
        raise InputError("has no estimate: its model or a value is unknown", path, remedy="see `advisor check`")
    return found.run


def offers_of(run: Run, session: Session, tokens: float | None = None, price: float | None = None) -> list[Offer]:
    """The cards that would do for a run, best first, whatever its own are; none where its model is unknown."""
    if run.model is None or run.unreadable or run.is_json_alone:
        return []
    somewhere = run if run.hardware is not None else on_hardware(run, parse_hardware(ANYWHERE))
    return chosen_offers(somewhere, all_gpus(), session, lambda row: offer_of(row, tokens, price), plans=FEW_PLANNED)


def chosen_offers(
    run: Run,
    gpus: Sequence[Gpu],
    session: Session,
    offer: Callable[[Row], Offer],
    *,
    accepts: Callable[[Offer], bool] = lambda _: True,
    plans: int = MOST_PLANNED,
    all_: bool = False,
) -> list[Offer]:
    """Rows as offers that are accepted, best first: as many as a screen takes, or all."""
    wanted = Wanted(
        planner(session.options), lambda row: offer(row).worth, lambda row: accepts(offer(row)), MOST_SHOWN, plans
    )
    rows = every_row(run, gpus, wanted) if all_ else chosen_rows(run, gpus, wanted)
    return cards.ranked(map(offer, rows))[: None if all_ else MOST_SHOWN]


def offer_of(row: Row, tokens: float | None, price: float | None) -> Offer:
    """A row with hours and price, and what it is ranked by."""
    steps, time, seconds = steps_of(row.run, tokens), row.time, row.seconds
    hours = steps * time.expected / 3600 if steps is not None and time is not None else None
    worth = None
    if seconds is not None:
        gpus = row.hardware.world_size
        worth = seconds / row.tokens if steps is None else steps * seconds / 3600 * gpus
        worth *= 1 if price is None else price
    return Offer(row, hours, price, worth)


def is_within(offer: Offer, hours: float | None, cost: float | None) -> bool:
    """Whether it keeps the limits of time and cost; what is unknown does not."""
    in_time = hours is None or (offer.hours is not None and offer.hours <= hours)
    return in_time and (cost is None or (offer.cost is not None and offer.cost <= cost))


def check_limits(run: Run, asked: HardwareOptions) -> None:
    """Limits need what they are limits of."""
    known = asked.tokens is not None or steps_of(run, None) is not None
    if (asked.within or asked.under is not None) and not known:
        option = "--within" if asked.within else "--under"
        raise InputError(f"{option} needs the length of the run", remedy="add `--tokens 200M`, the tokens of an epoch")
    if asked.under is not None and asked.price is None and asked.prices is None:
        raise InputError("--under needs prices", remedy="add `--price 2.10` or `--prices prices.toml`")


def parse_hours(text: str) -> float:
    """Hours of ``6h`` or ``2d``. Raises ``InputError``."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise InputError(f"`--within {text}` is not a duration", remedy="write for example `--within 6h`")
    return float(match[1]) * HOURS[match[2].lower()]


def chosen(names: str | None) -> list[Gpu]:
    """The cards that were named, or all of the catalogue. ``InputError`` for an unknown one."""
    if names is None:
        return all_gpus()
    return [gpu_named(name) for name in filter(None, map(str.strip, names.lower().split(",")))]
