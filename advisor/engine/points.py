"""Points of a plan: sets of moves from the run as written, each worked out once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from advisor.engine.rule import Rule
from advisor.engine.states import State, loads_alike, resumes, trains_the_same
from advisor.engine.steps import alternatives, run_after
from advisor.record import record, replace
from advisor.run import Run
from advisor.run.edits import RunEdits

Move = tuple[str, int]
"""A rule, and which of its alternatives: 0 is the mildest."""
Moves = tuple[Move, ...]
Offer = tuple[Moves, str]
"""Moves, and a rule that may come next."""

BATCH = frozenset({"smaller-micro-batch", "larger-micro-batch"})
"""The rules that change the micro batch at the same global batch."""


@record(eq=False)
class Reached:
    """Where moves lead, how many of them change what is trained, and whether a package must be installed first."""

    state: State
    changes: int = 0
    needs_package: bool = False


@record(eq=False)
class Paths:
    """What was worked out from a start: where moves lead, with which micro batches, and which rules may come next."""

    reached: dict[Moves, Reached | None] = field(default_factory=dict[Moves, "Reached | None"])
    batched: dict[tuple[Moves, int], State] = field(default_factory=dict[tuple[Moves, int], State])
    offered: dict[Offer, Sequence[RunEdits]] = field(default_factory=dict[Offer, Sequence[RunEdits]])


@record(eq=False)
class Walk:
    """Where moves lead from a start, by ``rules``; ``safe_only``: as long as the same is trained.

    ``packages``: also by what needs one that axolotl does not install.
    """

    start: State
    known: Mapping[str, Rule]
    """All rules of the flowchart; ``rules`` are those that may be moved by for now."""
    rules: Mapping[str, Rule]
    safe_only: bool = False
    packages: bool = False
    asked: Moves = ()
    """What the YAML asks for itself: made first, and no change of what is trained."""
    settled: frozenset[Move] = frozenset()
    """Changes of what is trained that are decided on: whatever else is searched for, they do not count."""
    paths: Paths = field(default_factory=Paths)

    @cached_property
    def sizes(self) -> tuple[tuple[int, Moves], ...]:
        """The micro batches that can be had at the same global batch, ascending, each with its move."""
        run = self.start.run
        found: list[tuple[int, Moves]] = [(run.micro_batch_size, ())]
        for rule in sorted(BATCH & self.rules.keys()):
            if self.rules[rule].when(run):
                for index, edits in enumerate(alternatives(self.rules[rule], run)):
                    found.append((int(str(edits["micro_batch_size"])), ((rule, index),)))
        return tuple(sorted(found, key=lambda one: one[0]))

    def after(self, moves: Moves) -> State | None:
        """The state after moves; None where one of them does not apply or is not wanted."""
        found = self.judged(moves)
        if found is None or (self.safe_only and found.changes) or (found.needs_package and not self.packages):
            return None
        return found.state

    def judged(self, moves: Moves) -> Reached | None:
        """Where moves lead, wanted or not."""
        if not moves:
            return Reached(self.start)
        if moves not in self.paths.reached:
            self.paths.reached[moves] = self.moved(moves[:-1], moves[-1])
        return self.paths.reached[moves]

    def offers(self, before: Moves, name: str) -> Sequence[RunEdits]:
        """The alternatives of a rule after moves, mildest first; none where it does not apply."""
        if (before, name) not in self.paths.offered:
            found, rule = self.judged(before), self.known[name]
            applies = found is not None and rule.when(found.state.run)
            self.paths.offered[before, name] = (
                alternatives(rule, found.state.run) if found is not None and applies else ()
            )
        return self.paths.offered[before, name]

    def moved(self, before: Moves, move: Move) -> Reached | None:
        """One move further."""
        found, rule, offered = self.judged(before), self.known[move[0]], self.offers(before, move[0])
        if found is None or move[1] >= len(offered):
            return None
        old = found.state.run
        run = run_after(old, offered[move[1]], rule)
        if run is None or (resumes(old) and not loads_alike(old, run)):
            return None
        asked = (*before, move) == self.asked[: len(before) + 1]
        same = asked or move in self.settled or trains_the_same(rule, old, run)
        return Reached(State(run), found.changes + (not same), found.needs_package or bool(rule.requires(old, run)))


def at_batch(walk: Walk, moves: Moves, micro_batch_size: int) -> State:
    """A point of the walk with another micro batch at the same global batch."""
    if (moves, micro_batch_size) not in walk.paths.batched:
        found = walk.after(moves)
        assert found is not None, "a leaf leads somewhere"
        same = found.run.micro_batch_size == micro_batch_size
        walk.paths.batched[moves, micro_batch_size] = found if same else State(_with_batch(found.run, micro_batch_size))
    return walk.paths.batched[moves, micro_batch_size]


def with_rules(walk: Walk, rules: Iterable[str], *, safe_only: bool, packages: bool) -> Walk:
    """The walk by these rules alone; what was worked out stays known."""
    kept = {name: walk.known[name] for name in rules}
    return replace(walk, rules=kept, safe_only=safe_only, packages=packages)


def _with_batch(run: Run, micro_batch_size: int) -> Run:
    """The run with another micro batch at the same global batch, as its documents would have it."""
    rows = run.micro_batch_size * run.gradient_accumulation_steps
    follows = run.packs_evaluation or not run.config.has("eval_batch_size")
    return replace(
        run,
        micro_batch_size=micro_batch_size,
        gradient_accumulation_steps=rows // micro_batch_size,
        eval_batch_size=micro_batch_size if follows else run.eval_batch_size,
    )
