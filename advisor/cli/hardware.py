"""``advisor hardware``: 0 some cards would do, 1 none, 2 could not run."""

import re
from functools import partial

import click

from advisor.cli.options import config_at
from advisor.cli.prices import read_prices
from advisor.engine.answer_steps import stops_in
from advisor.engine.lint import lint_findings
from advisor.errors import InputError
from advisor.hardware.prices import Prices
from advisor.opening import open_run
from advisor.progress import doing, shown
from advisor.record import record, replace
from advisor.report import cards
from advisor.report.cards import Offer
from advisor.report.offers import ANYWHERE, MOST_PLANNED, Asked, chosen_offers, gpus_named
from advisor.report.terminal import own_style
from advisor.report.time import steps_of
from advisor.run import Run
from advisor.session import RunOptions, Session, session_for
from advisor.session.amounts import parse_tokens
from advisor.streams import aside
from advisor.util import as_typed, counted, regex

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
    tokens = None if asked.tokens is None else parse_tokens(asked.tokens)
    within = None if asked.within is None else _parse_hours(asked.within)
    session = session_for([path], options, detects=False)
    prices = Prices(asked.price, read_prices(asked.prices, session.context.own) if asked.prices else None)
    gpus = gpus_named(asked.cards, session)
    with shown(), doing(path):
        run = opened(path, session)
        _check_limits(run, asked)
        accepts = partial(_is_within, hours=within, cost=asked.under)
        offers = chosen_offers(run, gpus, session, Asked(tokens, prices, accepts, MOST_PLANNED, asked.all))
    if not offers:
        aside(f"{path}: no card of the catalogue would do{_why(run, path, session)}")
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
            click.echo(cards.text(cards.entries(offers), notes, style), color=True)
    return 0


def _why(run: Run, path: str, session: Session) -> str:
    """Where an error stops the run whatever the card, what says so."""
    stops = stops_in(lint_findings(run, session.options))
    if not stops:
        return ""
    stop = f"{counted(len(stops), 'error')} stop{'s' if len(stops) == 1 else ''} it"
    return f" as it is written: {stop}, see `{as_typed('advisor', 'check', path)}`"


def opened(path: str, session: Session) -> Run:
    """The run on one large card, whatever the config says, so that it can be moved to others."""
    context = session.context
    found = open_run(config_at(path), replace(context, gpus=context.gpus or context.default_gpus or ANYWHERE))
    if found.run.model is None or found.run.unreadable:
        raise InputError("has no estimate: its model or a value is unknown", path, remedy="see `advisor check`")
    return found.run


def _is_within(offer: Offer, hours: float | None, cost: float | None) -> bool:
    """Whether it keeps the limits of time and cost; what is unknown does not."""
    in_time = hours is None or (offer.hours is not None and offer.hours <= hours)
    return in_time and (cost is None or (offer.cost is not None and offer.cost <= cost))


def _check_limits(run: Run, asked: HardwareOptions) -> None:
    """Limits need what they are limits of."""
    known = asked.tokens is not None or steps_of(run, None) is not None
    if (asked.within or asked.under is not None) and not known:
        option = "--within" if asked.within else "--under"
        raise InputError(f"{option} needs the length of the run", remedy="add `--tokens 200M`, the tokens of an epoch")


def _parse_hours(text: str) -> float:
    """Hours of ``6h`` or ``2d``. Raises ``InputError``."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise InputError(f"`--within {text}` is not a duration", remedy="write for example `--within 6h`")
    return float(match[1]) * HOURS[match[2].lower()]
