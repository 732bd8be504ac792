"""The cards that would do for a run, ranked: what every front end shows of other hardware."""

from collections.abc import Callable, Sequence

from advisor.engine.cards import Row, all_gpus
from advisor.engine.check import planner
from advisor.engine.choice import Wanted, chosen_rows, every_row
from advisor.engine.hardware_that_fits import on_hardware
from advisor.hardware import Gpu, parse_hardware
from advisor.report import cards
from advisor.report.cards import Offer
from advisor.report.time import steps_of
from advisor.run import Run
from advisor.session import Session

MOST_SHOWN = 12
MOST_PLANNED = 24
"""About 4 s of CPU."""
FEW_PLANNED = 10
"""Plans where cards are shown next to other things: about a second of CPU."""
ANYWHERE = "1x b200"
"""Where a run is read whose own cards are unknown."""


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
