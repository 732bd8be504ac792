"""Where a plan may start, and what was searched: the run with what comes before all else made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from advisor.engine.axes import EXPERTS, FIRST, HALF
from advisor.engine.points import Moves, Paths, Walk
from advisor.engine.rule import Rule
from advisor.engine.search import Point
from advisor.engine.states import State
from advisor.record import record, replace

LAST = frozenset({"no-checkpointing", "larger-micro-batch"})
"""What uses the room that the other steps make is told after them."""
End = tuple[Walk, Point]
MOST_FORMS = 2
"""Half precision with fp32 masters, and without."""


@record(eq=False)
class Tier:
    """What sort of run it will be: a name, and the rules that come with it, in the order in which they are told."""

    name: str
    rules: tuple[Rule, ...]


@record(eq=False)
class Search:
    """A plan in the making: where it may start, the order in which it is told, and what was searched in vain."""

    bases: tuple[Walk, ...]
    """The run with what comes first made, the best form of it first."""
    order: Mapping[str, int]
    tried: set[tuple[Moves, Moves]] = field(default_factory=set["tuple[Moves, Moves]"])
    """Families, each with the base that it starts from."""
    lean: list[Callable[[], list[End]]] = field(default_factory=list["Callable[[], list[End]]"])
    """Of each part that was searched in vain, what needs least memory; looked for once it is asked for."""
    vain: list[tuple[Walk, list[Moves]]] = field(default_factory=list["tuple[Walk, list[Moves]]"])
    """Those parts."""
    fastest: bool = False
    """Whether the fastest end is wanted, and not the one of fewest edits among those as fast as written."""

    @property
    def start(self) -> State:
        """The run as written."""
        return self.bases[0].start

    @property
    def ends(self) -> list[End]:
        """The ends of all parts, the smallest first."""
        return smallest_first(end for ends in self.lean for end in ends())


def smallest_first(ends: Iterable[End]) -> list[End]:
    """Ends by what they need, then by how many moves lead there."""
    return sorted(ends, key=lambda end: (end[1].state.needed, end[1].state.estimate.needed.high, len(end[1].moves)))


def search_from(
    start: State, flowchart: Sequence[Tier], walked: dict[Moves, Paths], *, safe_only: bool, fastest: bool = False
) -> Search:
    """With the steps that come first made, unless they are not wanted. ``fastest``, ``walked``: as of ``plan_fit``."""
    rules = {rule.id: rule for tier in flowchart for rule in tier.rules}
    told = sorted(rules, key=lambda rule: rule in LAST)
    walk = Walk(start, rules, rules, safe_only=safe_only, paths=walked.setdefault((), Paths()))
    bases = _bases(walk, flowchart)
    walks = (replace(walk, asked=asked, paths=walked.setdefault(asked, Paths())) for asked in bases)
    return Search(tuple(walks), {rule: rank for rank, rule in enumerate(told)}, fastest=fastest)


def _bases(walk: Walk, flowchart: Sequence[Tier]) -> list[Moves]:
    """What is made before all else: the bits that the YAML asks for; half precision where it is the first rung.

    Bits that are asked for reach the experts, too, unless nothing fits so. Half precision comes in each of its forms,
    that with fp32 masters first.
    """
    asked: Moves = ((FIRST, 0),) if FIRST in walk.rules else ()
    start = walk.after(asked)
    if start is None:
        asked, start = (), walk.start
    experts: Moves = (*asked, (EXPERTS, 0))
    if EXPERTS in walk.rules and walk.known[EXPERTS].is_safe(start.run) and walk.after(experts) is not None:
        return [experts, asked]
    rung = next((rule for tier in flowchart[:1] for rule in tier.rules if rule.id == HALF), None)
    forms = [(*asked, (HALF, form)) for form in range(MOST_FORMS)] if rung is not None else []
    return [moves for moves in forms if walk.after(moves) is not None] or [asked]
