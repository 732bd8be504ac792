"""What a person is told of the runs that this machine has seen; no pipeline depends on them."""

import os

from advisor.engine.finding import Report
from advisor.memory.seen_before import seen_words
from advisor.record import replace
from advisor.run import Run

PIPELINES = ("CI", "PRE_COMMIT")


def with_seen(report: Report, run: Run, *, isolated: bool) -> Report:
    """The report with what a run like this one took here; in a pipeline, or ``isolated``, as it is."""
    told = not isolated and not any(os.environ.get(name) for name in PIPELINES)
    words = seen_words(run) if told else ""
    return replace(report, seen=words) if words else report
