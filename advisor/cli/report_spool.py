"""The reports of a call over many configs: more than a few hundred wait in a file, not in memory."""

import sys
from collections.abc import Iterable
from typing import IO

from advisor.engine.finding import Report
from advisor.report.chosen import ReadInTurn

MOST_HELD = 500
"""Of some 30 kB each."""


class ReportSpool(ReadInTurn):
    """Reports in order: those past ``MOST_HELD`` in a temporary file without a name, where there is room for one."""

    def __init__(self, reports: Iterable[Report], most: int = MOST_HELD) -> None:
        self.most = most
        self.held: list[Report] = []
        self.places: list[int] = []
        self.file: IO[bytes] | None = None
        for report in reports:
            if len(self.held) < self.most or not self.written(report):
                self.held.append(report)

    def written(self, report: Report) -> bool:
        """Whether the file took it; where it did not, all are held from then on."""
        import pickle
        import tempfile

        try:
            self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the reports)
            place = self.file.seek(0, 2)
            pickle.dump(report, self.file)
            self.file.flush()
        except OSError:
            self.held, self.places, self.most = list(self), [], sys.maxsize
            return False
        self.places.append(place)
        return True

    def __len__(self) -> int:
        return len(self.held) + len(self.places)

    def at(self, place: int) -> Report:
        """From memory, or from the file."""
        written = place - len(self.held)
        if written < 0:
            return self.held[place]
        import pickle

        assert self.file is not None, "what is not held was written"
        self.file.seek(self.places[written])
        return pickle.load(self.file)
