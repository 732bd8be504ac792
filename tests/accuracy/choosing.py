"""Chooses the constants that a source moved again, from the other sources: ``python -m tests.accuracy.choosing``.

Coordinate descent from the priors over steps of a tenth, up to twice and down to half, until no single step helps. What
is made small: the mean absolute logarithm of predicted over measured time of each source, and the distance from the
priors. So a constant that no other source speaks of stays where it is. It takes minutes.
"""

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from advisor.accuracy.left_out import PRIORS, TABLE, moved_by
from advisor.accuracy.timed import timed
from advisor.accuracy.timing import JudgedTime, judged
from advisor.record import record
from advisor.speed import StepTime, step_time
from advisor.speed.constants import CHOSEN_FROM, SHIPPED

STEPS = tuple(1.1**n for n in range(-7, 8))
"""Of a prior."""
SHRINKAGE = 0.01
"""What a value costs that is off its prior by the prior's spread: one point of mean error. It grows as a square."""
WHOLE = 4
"""A source with so many figures counts half: few rows of one rig say little more than one."""
NO_GAIN = 1e-6


@record(eq=False)
class Choosing:
    """Figures of some sources, and constants that are free to move."""

    cases: Sequence[JudgedTime]
    names: Sequence[str]

    @cached_property
    def priors(self) -> dict[str, float]:
        """Where it starts."""
        return {name: PRIORS[name].value for name in self.names}

    @cached_property
    def weights(self) -> list[float]:
        """Of each figure; those of a source are alike, and all together one."""
        rows: defaultdict[str, int] = defaultdict(int)
        for case in self.cases:
            rows[case.case.repository] += 1
        whole = sum(n / (n + WHOLE) for n in rows.values())
        return [1 / (rows[case.case.repository] + WHOLE) / whole for case in self.cases]

    def off(self, values: Mapping[str, float], places: Iterable[int]) -> dict[int, float]:
        """The weighted errors of some figures."""
        constants = SHIPPED.having(values)
        return {place: self.weights[place] * error(self.cases[place], constants) for place in places}

    def touched(self, name: str) -> list[int]:
        """The figures that a constant bears on."""
        everywhere = range(len(self.cases))
        before = self.off(self.priors, everywhere)
        after = self.off(self.priors | {name: 1.3 * self.priors[name]}, everywhere)
        return [place for place in everywhere if before[place] != after[place]]

    def distance(self, values: Mapping[str, float]) -> float:
        """What lies between the values and their priors costs."""
        spreads = {name: math.log(PRIORS[name].spread) for name in values}
        off = ((math.log(value / self.priors[name]) / spreads[name]) ** 2 for name, value in values.items())
        return SHRINKAGE * sum(off)

    def chosen(self) -> dict[str, float]:
        """The values, to three digits."""
        touched = {name: self.touched(name) for name in self.names}
        values = dict(self.priors)
        errors = self.off(values, range(len(self.cases)))
        moved = True
        while moved:
            moved = False
            for name in self.names:
                best, cost = values[name], sum(errors.values()) + self.distance(values)
                for value in (rounded(step * self.priors[name]) for step in STEPS):
                    tried = values | {name: value}
                    found = errors | self.off(tried, touched[name])
                    if touched[name] and sum(found.values()) + self.distance(tried) < cost - NO_GAIN:
                        best, cost = value, sum(found.values()) + self.distance(tried)
                if best != values[name]:
                    values[name], moved = best, True
                    errors |= self.off(values, touched[name])
        return values


def error(case: JudgedTime, constants: object) -> float:
    """The absolute logarithm of predicted over measured time."""
    found = step_time.__wrapped__(case.run, case.case.conditions, constants)
    assert isinstance(found, StepTime)
    return abs(math.log(case.case.tokens_per_second / found.tokens_per_second_per_gpu))


def rounded(value: float) -> float:
    """To three digits."""
    return float(f"{value:.3g}")


def chosen_without(repository: str, cases: Iterable[JudgedTime]) -> dict[str, float]:
    """The constants that a repository moved, as the other figures would have them."""
    others = [case for case in cases if case.case.repository != repository]
    return Choosing(others, moved_by(repository)).chosen()


def main() -> None:
    """Writes the table."""
    cases, _ = judged(timed())
    table: dict[str, dict[str, float]] = {}
    for repository in sorted(CHOSEN_FROM):
        table[repository] = chosen_without(repository, cases)
        print(repository, table[repository], file=sys.stderr)
    TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
