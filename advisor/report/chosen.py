"""Some reports out of many, each read when it is its turn: thousands wait in a file, not in memory."""

from collections.abc import Callable, Sequence
from typing import overload

from advisor.engine.finding import Report


class Chosen(Sequence[Report]):
    """The reports that a condition holds for, in order."""

    def __init__(self, reports: Sequence[Report], holds: Callable[[Report], bool]) -> None:
        self.reports = reports
        self.places = [place for place, report in enumerate(reports) if holds(report)]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Report: ...
    @overload
    def __getitem__(self, index: slice) -> list[Report]: ...
    def __getitem__(self, index: int | slice) -> Report | list[Report]:
        if isinstance(index, slice):
            return [self.reports[place] for place in self.places[index]]
        return self.reports[self.places[index]]
