"""Reports that are read one at a time: of thousands, most wait in a file, not in memory."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import overload

from advisor.engine.finding import Report


class ReadInTurn(Sequence[Report]):
    """Reports by their place, each read when it is asked for."""

    @abstractmethod
    def at(self, place: int) -> Report:
        """The report of a place, from 0 on."""

    @overload
    def __getitem__(self, index: int) -> Report: ...
    @overload
    def __getitem__(self, index: slice) -> list[Report]: ...
    def __getitem__(self, index: int | slice) -> Report | list[Report]:
        places = range(len(self))[index]
        return self.at(places) if isinstance(places, int) else [self.at(place) for place in places]


class Chosen(ReadInTurn):
    """Those of other reports that a condition holds for, in order."""

    def __init__(self, reports: Sequence[Report], holds: Callable[[Report], bool]) -> None:
        self.reports = reports
        self.places = [place for place, report in enumerate(reports) if holds(report)]

    def __len__(self) -> int:
        return len(self.places)

    def at(self, place: int) -> Report:
        """The report that was chosen as the one of this place."""
        return self.reports[self.places[place]]
