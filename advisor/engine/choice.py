"""Which cards to show: of each the number that does best, as written or with a plan, until a screen is full."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property

from advisor.engine.cards import Row, clusters_of, errors_anywhere, nodes_of, rows_on
from advisor.engine.states import Plan
from advisor.hardware import Gpu, Hardware
from advisor.record import record, replace
from advisor.run import Run

CLOSE = 1.25
"""A smaller number of a card is shown as long as it costs no more than this, of the best number."""
UNKNOWN = float("inf")
SKILLS = ("bf16", "fp8", "flash_attention")


@record(eq=False)
class Wanted:
    """What a call asks of rows: limits, what they are ranked by (less is better), how many, and plans at most."""

    planner: Callable[[Run, bool], Plan]
    worth: Callable[[Row], float | None]
    accepts: Callable[[Row], bool]
    shown: int
    plans: int
    owned: frozenset[str] = frozenset()
    """Ids of cards that are looked at before all others."""


@record(eq=False)
class Card:
    """One card: the run on each number of it on one node, as written."""

    gpu: Gpu
    run: Run
    errors: frozenset[str]
    """Rules that find an error in the config wherever it runs."""

    @cached_property
    def rows(self) -> list[Row]:
        """The run on each number, as written."""
        return rows_on(self.run, nodes_of(self.run, self.gpu), self.errors)

    def first(self, does: Callable[[Row], bool]) -> Row | None:
        """The smallest number that does; larger ones are not looked at."""
        places = ((place,) for place in nodes_of(self.run, self.gpu))
        rows = (row for place in places for row in rows_on(self.run, place, self.errors))
        return next(filter(does, rows), None)

    @cached_property
    def clusters(self) -> list[Row]:
        """The run on several nodes, as written."""
        return rows_on(self.run, clusters_of(self.run, self.gpu), self.errors)


@record(eq=False)
class Choice:
    """The rows that were chosen, and the hardware on which plans came to nothing, by whether they must be safe."""

    wanted: Wanted
    chosen: list[Row] = field(default_factory=list[Row])
    tried: list[Hardware] = field(default_factory=list[Hardware])
    """Where plans were made."""
    in_vain: list[tuple[bool, Hardware]] = field(default_factory=list[tuple[bool, Hardware]])
    untried: list[Card] = field(default_factory=list[Card])
    """Cards on which it does not fit as written, and no plan was made for all numbers."""

    @property
    def is_over(self) -> bool:
        """Whether no more plans are to be made."""
        return len(self.tried) >= self.wanted.plans

    @property
    def last(self) -> float:
        """What the last row of a full screen is worth; what is worth less need not be looked at."""
        worths = sorted(_worth_of(self.wanted, row) for row in self.chosen if not row.changes_training)
        return worths[self.wanted.shown - 1] if len(worths) >= self.wanted.shown else UNKNOWN

    @property
    def last_size(self) -> int:
        """How many cards the last plan that came to something took."""
        ends = [row.hardware.world_size for row in self.chosen if row.steps]
        return ends[-1] if ends else 1

    def done(self, row: Row, *, safe: bool = False) -> Row | None:
        """A row as written where that does, else at the end of its plan."""
        return row if row.fits and self.wanted.accepts(row) else self.planned(row, safe=safe)

    def planned(self, row: Row, *, safe: bool) -> Row | None:
        """A row at the end of its plan, where that does; not tried where less memory of a like card would not do."""
        if self.is_over or row.errors or any(kind == safe and is_less(row.hardware, at) for kind, at in self.in_vain):
            return None
        self.tried.append(row.hardware)
        plan = self.wanted.planner(row.run, safe)
        if plan.verdict != "fits":
            self.in_vain.append((safe, row.hardware))
            return None
        end = Row(plan.end.run, plan.end.estimate, plan.names, not plan.safe, row.of_config)
        return end if self.wanted.accepts(end) else None


def _cards_of(run: Run, gpus: Iterable[Gpu]) -> Iterator[Card]:
    """The cards, each with the run on one node of each size."""
    errors = errors_anywhere(run)
    return (Card(gpu, run, errors) for gpu in gpus)


def chosen_rows(run: Run, gpus: Iterable[Gpu], wanted: Wanted) -> Choice:
    """Of each card the smallest number that fits as written, else with plans the best, what may be best first."""
    choice = Choice(wanted)
    lacking: list[Card] = []
    for card in _cards_of(run, gpus):
        row = card.first(lambda row: row.fits and wanted.accepts(row))
        choice.chosen.extend([] if row is None else [row])
        lacking.extend([card] if row is None else [])
    hopes = {card.gpu.id: _hope_of(wanted, card) for card in lacking}
    lacking.sort(key=lambda card: (card.gpu.id not in wanted.owned, hopes[card.gpu.id], -card.gpu.total_bytes))
    for safe in (True, False):
        rest: list[Card] = []
        for index, card in enumerate(lacking):
            full = len(choice.chosen) >= wanted.shown and card.gpu.id not in wanted.owned
            if choice.is_over or (full and (not safe or hopes[card.gpu.id] > choice.last)):
                rest.extend(lacking[index:])
                choice.untried[:] = lacking[index:]
                break
            row = _planned_row(choice, card, safe=safe)
            choice.chosen.extend([] if row is None else [row])
            rest.extend([card] if row is None else [])
        lacking = rest
    return choice


def _planned_row(choice: Choice, card: Card, *, safe: bool) -> Row | None:
    """The best number of a card with a plan: as many as the last card took, then fewer; more while it is too few."""
    sizes = [row.hardware.world_size for row in card.rows]
    at = max((index for index, size in enumerate(sizes) if size <= choice.last_size), default=0)
    found = [end for row in reversed(card.rows[: at + 1]) if (end := choice.planned(row, safe=safe)) is not None]
    for row in (*card.rows[at + 1 :], *card.clusters):
        if any(not end.estimate.condition for end in found):
            break
        end = choice.done(row, safe=safe)
        found += [] if end is None else [end]
    return best_of(choice.wanted, found)


def every_row(run: Run, gpus: Iterable[Gpu], wanted: Wanted) -> Choice:
    """Every number of every card that does, as written or with a plan; several nodes where one is too few."""
    choice = Choice(replace(wanted, plans=1 << 30))
    for card in _cards_of(run, gpus):
        found = [row for row in map(choice.done, card.rows) if row is not None]
        if all(row.changes_training or row.estimate.condition for row in found):
            found += [row for row in map(choice.done, card.clusters) if row is not None]
        choice.chosen.extend(found)
    return choice


def best_of(wanted: Wanted, rows: Sequence[Row]) -> Row | None:
    """Of one card's rows the smallest number that is nearly as good as the best."""
    least = min((_worth_of(wanted, row) for row in rows), default=UNKNOWN)
    near = [row for row in rows if _worth_of(wanted, row) <= CLOSE * least]
    return min(near, key=lambda row: row.hardware.world_size, default=None)


def _worth_of(wanted: Wanted, row: Row) -> float:
    """What a row is ranked by; endless where it is not known."""
    found = wanted.worth(row)
    return UNKNOWN if found is None else found


def _hope_of(wanted: Wanted, card: Card) -> float:
    """What the same training would be worth on one such card without end: nothing is sharded or computed twice."""
    run = replace(
        card.rows[0].run,
        sharding=None,
        activation_checkpointing=False,
        activation_offloading=None,
        loss="liger-fused",
        liger=frozenset({"rms_norm", "glu", "rope"}),
    )
    return _worth_of(wanted, Row(run, card.rows[0].estimate))


def is_less(one: Hardware, other: Hardware) -> bool:
    """Whether hardware has no more of anything than another."""
    mine, theirs = one.gpu, other.gpu
    able = all(getattr(mine, skill) <= getattr(theirs, skill) for skill in SKILLS)
    host = (one.host_bytes or one.common_host_bytes) <= (other.host_bytes or other.common_host_bytes)
    fewer = one.nodes <= other.nodes and one.gpus_per_node <= other.gpus_per_node
    return fewer and host and able and mine.total_bytes <= theirs.total_bytes
