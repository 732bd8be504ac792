"""A run that ran out of memory, next to what was foreseen."""

from collections.abc import Iterator

from advisor.cli.crash_log import Death
from advisor.cli.verifying.seen import Seen
from advisor.session import CheckedRun
from advisor.util import gib, number, path_shown

PLACES = {"host": "of host memory", "vllm": "of vLLM's share of the GPU"}


def out_of_memory(found: CheckedRun, death: Death, seen: Seen | None) -> Iterator[str]:
    """Where it ran out, what was foreseen, and what to do: a line each."""
    estimate = found.report.estimate
    assert estimate is not None, "what has no estimate is refused"
    where = f" in {seen.during}" if seen is not None else ""
    had = f", with {gib(death.needed)} needed" if death.needed else ""
    what = PLACES.get(death.cause, "of memory")
    foreseen = f"{number(estimate.needed.low)} to {number(estimate.needed.high)} of {gib(estimate.usable)} were foreseen"
    verdict = "as foreseen" if found.report.verdict == "does-not-fit" else "not as foreseen"
    yield f"ran out {what}{where}{had}: {foreseen}, {verdict}"
    file = path_shown(found.run.config.file)
    yield f"help: `advisor check {file}` shows the edits that fit; `advisor oom LOG --config {file}` explains a run's log"
