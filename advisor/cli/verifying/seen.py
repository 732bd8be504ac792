"""What the steps took, as the processes that trained wrote it down: one file a rank."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from advisor.record import record

STEP = "backward and optimizer step"
"""DeepSpeed's engine steps within ``accelerator.backward``: accelerate/utils/deepspeed.py, backward@1.13.0."""


@record
class PhaseSeen:
    """The worst moment of one phase on the rank that held most. Bytes."""

    name: str
    allocated: int
    reserved: int


@record
class Seen:
    """What was seen of the steps that went through. ``host``: what this node's processes held in memory."""

    phases: tuple[PhaseSeen, ...]
    steps: int
    seconds: float | None
    """Of a step at the median, the first one left out."""
    host: int
    during: str
    """The phase in which the training was last."""
    ended: bool

    @property
    def allocated(self) -> int:
        """The highest peak of all phases."""
        return max((phase.allocated for phase in self.phases), default=0)

    @property
    def reserved(self) -> int:
        """The most that torch had reserved; 0 on a CPU."""
        return max((phase.reserved for phase in self.phases), default=0)

    def phase(self, name: str) -> PhaseSeen | None:
        """A phase by name; None if it was not seen."""
        return next((phase for phase in self.phases if phase.name == name), None)


def file_of(rank: int) -> str:
    """The file of a rank's figures."""
    return f"seen-{rank}.json"


def seen_in(folder: str) -> Seen | None:
    """The figures of all ranks that wrote into a folder, of each phase the highest; None where none has."""
    ranks = list(_ranks_in(folder))
    if not ranks:
        return None
    first = min(ranks, key=lambda rank: rank["rank"])
    names = dict.fromkeys(name for rank in ranks for name in rank["phases"])
    return Seen(
        phases=tuple(_highest(name, ranks) for name in names),
        steps=first["steps"],
        seconds=first["seconds"],
        host=sum(rank["host"] for rank in ranks),
        during=first["during"],
        ended=all(rank["ended"] for rank in ranks),
    )


def _ranks_in(folder: str) -> Iterator[dict[str, Any]]:
    """What each rank wrote; a file that is not whole is skipped."""
    for path in sorted(Path(folder).glob("seen-*.json")):
        with suppress(OSError, ValueError):
            yield json.loads(path.read_text(encoding="utf-8"))


def _highest(name: str, ranks: list[dict[str, Any]]) -> PhaseSeen:
    """A phase on the rank that held most."""
    there = [rank["phases"][name] for rank in ranks if name in rank["phases"]]
    return PhaseSeen(name, *(max(phase[key] for phase in there) for key in ("allocated", "reserved")))
