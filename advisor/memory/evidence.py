"""What the published runs show of reserved memory and of fragmentation, by kind of run: ``ranges.json``.

``advisor/accuracy/ranges.py`` derives it, and ``make accuracy`` rewrites it.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from advisor.record import record


@record
class Reserved:
    """Reserved over allocated bytes of one kind of run, and how many runs of how many sources show it."""

    low: float
    high: float
    runs: int
    sources: int


@record
class Slack:
    """Room for fragmentation: the least with which a run went through, above the most with which one failed."""

    share: float
    passed: str
    failed: str | None


@record(eq=False)
class Evidence:
    """Keys of ``reserved`` are kinds, those of ``needed`` ways of sharding: ``kinds.py``.

    ``expandable_share``: the slack with expandable segments over that without, from ``pairs`` of runs that differ in
    nothing else. ``underestimated``: what nine of ten runs allocate above the estimate at most.
    """

    reserved: Mapping[str, Reserved]
    reserved_expandable: Mapping[str, Reserved]
    needed: Mapping[str, Slack]
    needed_expandable: Mapping[str, Slack]
    expandable_share: tuple[float, float]
    pairs: int
    underestimated: float


@cache
def published_evidence() -> Evidence:
    """The table that ships."""
    return _read_evidence(json.loads(Path(__file__).with_name("ranges.json").read_text(encoding="utf-8")))


def _read_evidence(table: Mapping[str, Any]) -> Evidence:
    """The table as JSON has it."""
    return Evidence(
        reserved={key: Reserved(**entry) for key, entry in table["reserved"].items()},
        reserved_expandable={key: Reserved(**entry) for key, entry in table["reserved_expandable"].items()},
        needed={key: Slack(**entry) for key, entry in table["needed"].items()},
        needed_expandable={key: Slack(**entry) for key, entry in table["needed_expandable"].items()},
        expandable_share=(table["expandable_share"][0], table["expandable_share"][1]),
        pairs=table["pairs"],
        underestimated=table["underestimated"],
    )
