"""The cards that would do for a run, ranked: what every front end shows of other hardware."""

from collections.abc import Callable, Sequence

from advisor.engine.cards import Row, all_gpus
from advisor.engine.choice import Wanted, chosen_rows, every_row
from advisor.engine.hardware_that_fits import on_hardware
from advisor.engine.options import planner
from advisor.errors import InputError
from advisor.hardware import Gpu, gpu_named, parse_hardware
from advisor.hardware.prices import Price, Prices
from advisor.record import record
from advisor.report.cards import Offer, Offers, anchored, ranked
from advisor.report.time import steps_of
from advisor.run import Run
from advisor.session import Session

MOST_SHOWN = 12
MOST_PLANNED = 18
"""About 3 s of CPU."""
FEW_PLANNED = 10
"""Plans where cards are shown next to other things: about a second of CPU."""
ANYWHERE = "1x b200"
"""Where a run is read whose own cards are unknown."""
USUAL_TOKENS = 100e6
"""Of the whole run, where nobody says how many there are."""


@record(eq=False)
class Asked:
    """What a call says of the whole run: tokens of an epoch, prices, and which offers are accepted."""

    tokens: float | None = None
    prices: Prices = Prices()
    accepts: Callable[[Offer], bool] = lambda _: True
    plans: int = FEW_PLANNED
    all: bool = False


def offers_of(
    run: Run, session: Session, tokens: float | None = None, price: float | None = None, names: str | None = None
) -> Offers:
    """The cards that would do for a run, best first, whatever its own are; none where its model is unknown."""
    if run.model is None or run.unreadable or run.is_json_alone:
        return Offers()
    somewhere = run if run.hardware is not None else on_hardware(run, parse_hardware(ANYWHERE))
    return chosen_offers(somewhere, gpus_named(names, session), session, Asked(tokens, Prices(price)))


def every_gpu(session: Session) -> list[Gpu]:
    """Every card of the catalogue and of the settings."""
    return [*session.context.own.values(), *all_gpus()]


def gpus_named(names: str | None, session: Session) -> list[Gpu]:
    """The cards that were named, or all of the catalogue and the settings. ``InputError`` for an unknown one."""
    if names is None:
        return every_gpu(session)
    named = filter(None, map(str.strip, names.lower().split(",")))
    return [gpu_named(name, session.context.own) for name in named]


def owned_by(session: Session) -> frozenset[str]:
    """The ids of the cards that the settings name as owned. ``InputError`` for an unknown one."""
    try:
        return frozenset(gpu_named(name.lower(), session.context.own).id for name in session.context.owned)
    except InputError as error:
        raise InputError(f"`gpus.owned`: {error.message}", remedy=error.remedy) from None


def chosen_offers(run: Run, gpus: Sequence[Gpu], session: Session, asked: Asked) -> Offers:
    """Rows as offers that are accepted, best first: as many as a screen takes, or all."""
    tokens, usual = asked.tokens, steps_of(run, asked.tokens) is None
    if usual:
        tokens = USUAL_TOKENS / epochs_of(run)
    owned = owned_by(session)

    def offer(row: Row) -> Offer:
        return offer_of(row, tokens, asked.prices.of(row.hardware.gpu.id), row.hardware.gpu.id in owned)

    wanted = Wanted(
        planner(session.options),
        lambda row: offer(row).worth,
        lambda row: asked.accepts(offer(row)),
        MOST_SHOWN,
        asked.plans,
        owned,
    )
    chosen = every_row(run, gpus, wanted) if asked.all else chosen_rows(run, gpus, wanted)
    found = anchored(ranked(map(offer, chosen.chosen)))
    shown = found if asked.all else first_of(found)
    left = [each for each in found if each not in shown]
    return Offers(
        tuple(shown),
        tokens=USUAL_TOKENS if usual else None,
        more=len(left),
        changing=sum(each.row.changes_training for each in left),
        untried=len(chosen.untried),
    )


def first_of(offers: Sequence[Offer]) -> list[Offer]:
    """As many as a screen takes, the anchors always among them."""
    named = [offer for offer in offers if offer.anchors]
    others = [offer for offer in offers if not offer.anchors][: max(0, MOST_SHOWN - len(named))]
    return [offer for offer in offers if offer in named or offer in others]


def epochs_of(run: Run) -> float:
    """How often the dataset is trained on."""
    epochs = run.config.get("num_epochs", 1)
    return float(epochs) if isinstance(epochs, (int, float)) and epochs > 0 else 1.0


def offer_of(row: Row, tokens: float | None, price: Price | None, owned: bool = False) -> Offer:
    """A row with hours and price, and what it is ranked by; without a price that is nothing."""
    steps, time, seconds = steps_of(row.run, tokens), row.time, row.seconds
    hours = steps * time.expected / 3600 if steps is not None and time is not None else None
    worth = None
    if seconds is not None and price is not None:
        gpus = row.hardware.world_size
        worth = seconds / row.tokens if steps is None else steps * seconds / 3600 * gpus
        worth *= price.amount
    return Offer(row, hours, price, worth, owned)
