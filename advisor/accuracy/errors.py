"""Statistics of relative errors."""

from collections.abc import Sequence
from math import ceil
from statistics import mean, median

from advisor.record import record

LEAST_RUNS = 3
"""A smaller group is listed and not judged."""


@record
class Errors:
    """Errors as shares of what was measured: without sign, but for the bias, which is their mean."""

    runs: int
    median: float
    ninetieth: float
    worst: float
    bias: float


def errors_of(values: Sequence[float]) -> Errors | None:
    """The statistics of signed errors; None of none."""
    if not values:
        return None
    sizes = [abs(value) for value in values]
    return Errors(len(sizes), median(sizes), percentile(sizes, 0.9), max(sizes), mean(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value with at least ``share`` of them at or below it."""
    ordered = sorted(values)
    return ordered[max(0, ceil(round(share * len(ordered), 6)) - 1)]
