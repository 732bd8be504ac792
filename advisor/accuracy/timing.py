"""Predicted step times compared with published ones: errors, the order of pairs, the cost of a choice."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from statistics import mean, median

from advisor.accuracy.errors import percentile
from advisor.accuracy.left_out import without
from advisor.accuracy.timed import Timed, timed
from advisor.memory import estimate
from advisor.record import record
from advisor.run import Run
from advisor.speed import StepTime, step_time
from advisor.speed.card import card_of
from advisor.speed.compute import weights_of
from advisor.speed.constants import CHOSEN_FROM
from advisor.speed.kinds import kinds_of
from advisor.speed.price import MOST_GPUS

NAIVE_UTILISATION = 0.5
"""The share of the tensor rate that one number does best with on these figures."""
PAIR_APART = 1.1
ROOM = 0.95
"""Above this share of the card the allocator's retries slow a run, which no time models."""


@record(eq=False)
class JudgedTime:
    """A published run with what is said of it; rates in tokens a second of one GPU."""

    case: Timed
    run: Run
    said: StepTime
    naive: float

    @property
    def predicted(self) -> float:
        """The rate at the expected time."""
        return self.said.tokens_per_second_per_gpu

    @property
    def held(self) -> bool:
        """Whether the measured time lies in the range."""
        return self.said.low <= self.said.tokens / self.case.tokens_per_second <= self.said.high

    @property
    def error(self) -> float:
        """Predicted step time over the measured one, less 1."""
        return self.case.tokens_per_second / self.predicted - 1

    @property
    def naive_error(self) -> float:
        """The same of one utilisation number."""
        return self.case.tokens_per_second / self.naive - 1


@record
class TimeErrors:
    """Of one group: its figures, bias, median and nine tenths of the error, shares within 15 %, 25 % and the range."""

    name: str
    runs: int
    bias: float
    median: float
    p90: float
    within_15: float
    within_25: float
    held: float
    """By the range that is said."""
    naive_median: float
    naive_p90: float


@record
class Order:
    """Pairs more than a tenth apart that are ordered right, and what the best by prediction loses to the best."""

    pairs: int
    right: float
    naive_right: float
    sets: int
    regret_mean: float
    regret_worst: float
    naive_regret_mean: float
    naive_regret_worst: float


@record
class Timing:
    """Everything that ``advisor accuracy --time`` says."""

    all: TimeErrors
    unseen: TimeErrors | None
    """Of the sources that no constant was chosen from."""
    held_out: TimeErrors
    """Each source scored by constants that its figures did not move; the naive number fitted to the other sources."""
    held_out_sources: list[TimeErrors]
    held_out_order: Order
    groups: dict[str, list[TimeErrors]]
    order: Order
    left_out: list[str]
    """Figures without a prediction, and why."""


def timing() -> Timing:
    """The report on the published figures."""
    cases, unpriced = judged(timed())
    held_out = [one for source in sources(cases) for one in _judged_without(source, cases)]
    unseen = [case for case in cases if case.case.repository not in CHOSEN_FROM]
    return Timing(
        all=errors("all", cases),
        unseen=errors("of sources that moved no constant", unseen) if unseen else None,
        groups={name: grouped(key, cases) for name, key in KEYS.items()},
        order=order(cases),
        held_out=errors("each source left out", held_out),
        held_out_sources=grouped(KEYS["source"], held_out),
        held_out_order=order(held_out),
        left_out=unpriced,
    )


def sources(cases: Iterable[JudgedTime]) -> list[str]:
    """The repositories, each once."""
    return list(dict.fromkeys(case.case.repository for case in cases))


def _judged_without(source: str, cases: Sequence[JudgedTime]) -> list[JudgedTime]:
    """A source's runs by constants that its figures did not move, and by the number that suits the others best."""
    share = _best_utilisation([case for case in cases if case.case.repository != source])
    mine = [case for case in cases if case.case.repository == source]
    constants = without(source)
    times = [step_time(case.run, case.case.conditions, constants) for case in mine]
    return [
        JudgedTime(case.case, case.run, found, case.naive * share / NAIVE_UTILISATION)
        for case, found in zip(mine, times, strict=True)
        if isinstance(found, StepTime)
    ]


def _best_utilisation(cases: Sequence[JudgedTime]) -> float:
    """The one number with the least median error on these figures, in hundredths."""

    def off(share: float) -> float:
        return median(abs(rate(case) * NAIVE_UTILISATION / (case.naive * share) - 1) for case in cases)

    return min((n / 100 for n in range(5, 101)), key=off)


def judged(cases: Iterable[Timed]) -> tuple[list[JudgedTime], list[str]]:
    """The runs with a prediction, and the reasons of the others."""
    found: list[JudgedTime] = []
    unpriced: list[str] = []
    for case in cases:
        run = case.run()
        predicted = step_time(run, case.conditions)
        if isinstance(predicted, StepTime):
            found.append(JudgedTime(case, run, predicted, _naive_rate(run)))
        else:
            unpriced.append(f"{case.id}: {predicted.reason}")
    return found, unpriced


def _naive_rate(run: Run) -> float:
    """Tokens a second by one utilisation number: 2 operations a weight and forward pass, twice that backward."""
    assert run.model is not None and run.hardware is not None
    card = card_of(run.hardware.gpu, run.precision)
    assert card is not None
    passes = (4 if run.adapter else 6) + (2 if run.activation_checkpointing else 0)
    active = sum(block.count * sum(one for _, one in weights_of(block)) for block in run.model.blocks)
    return NAIVE_UTILISATION * card.tensor_flops / (passes * (active + run.model.hidden_size * run.model.vocab_size))


def method(case: JudgedTime) -> str:
    """``full``, ``lora``, or the quantization that an adapter sits on."""
    return kinds_of(case.run).method


KEYS: dict[str, Callable[[JudgedTime], str]] = {
    "source": lambda case: case.case.repository,
    "method": method,
    "card": lambda case: kinds_of(case.run).card,
    "sharding": lambda case: kinds_of(case.run).sharding,
    "confidence": lambda case: case.said.confidence,
}


def grouped(key: Callable[[JudgedTime], str], cases: Sequence[JudgedTime]) -> list[TimeErrors]:
    """The errors of each group, the largest first."""
    groups: defaultdict[str, list[JudgedTime]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(case)
    return sorted((errors(name, mine) for name, mine in groups.items()), key=lambda one: -one.runs)


def errors(name: str, cases: Sequence[JudgedTime]) -> TimeErrors:
    """The statistics of one group."""
    off = [abs(case.error) for case in cases]
    naive = [abs(case.naive_error) for case in cases]
    return TimeErrors(
        name,
        len(cases),
        median(case.error for case in cases),
        median(off),
        percentile(off, 0.9),
        mean(one <= 0.15 for one in off),
        mean(one <= 0.25 for one in off),
        mean(case.held for case in cases),
        median(naive),
        percentile(naive, 0.9),
    )


def order(cases: Sequence[JudgedTime]) -> Order:
    """Pairs and choices among runs of one model, card, count, method and length."""
    sets = list(_choice_sets(cases))
    apart = [
        (a, b)
        for group in sets
        for a, b in combinations(group, 2)
        if max(rate(a), rate(b)) > PAIR_APART * min(rate(a), rate(b))
    ]
    small = [group for group in map(_with_room, sets) if len(group) > 1]
    regrets = [_regret(group, lambda case: case.predicted) for group in small]
    naive = [_regret(group, lambda case: case.naive) for group in small]
    return Order(
        len(apart),
        mean((rate(a) > rate(b)) == (a.predicted > b.predicted) for a, b in apart),
        mean((rate(a) > rate(b)) == (a.naive > b.naive) for a, b in apart),
        len(small),
        mean(regrets),
        max(regrets),
        mean(naive),
        max(naive),
    )


def rate(case: JudgedTime) -> float:
    """What was measured."""
    return case.case.tokens_per_second


def _choice_sets(cases: Sequence[JudgedTime]) -> Iterator[list[JudgedTime]]:
    """Runs that differ in what one may choose."""
    groups: defaultdict[tuple[object, ...], list[JudgedTime]] = defaultdict(list)
    for case in cases:
        one = case.case
        key = (one.repository, one.config["base_model"], one.gpus, method(case), one.config["sequence_len"])
        groups[key].append(case)
    yield from (group for group in groups.values() if len(group) > 1)


def _with_room(group: Sequence[JudgedTime]) -> list[JudgedTime]:
    """Those on at most 64 GPUs that stay below the room of the card."""
    return [case for case in group if case.run.world_size <= MOST_GPUS and has_room(case.run)]


def has_room(run: Run) -> bool:
    """Whether the allocator has room to spare."""
    found = estimate(run)
    return found is None or found.reserved_peak.high <= ROOM * found.usable


def _regret(group: Sequence[JudgedTime], by: Callable[[JudgedTime], float]) -> float:
    """How much slower the choice is than the best, as a share."""
    return max(map(rate, group)) / rate(max(group, key=by)) - 1
