"""A run that ran out of memory, next to what was foreseen."""

from collections.abc import Iterator

from advisor.cli.crash_log import Death
from advisor.cli.verifying.planning import Trial
from advisor.cli.verifying.seen import Seen
from advisor.util import gib, number, path_shown

PLACES = {"host": "of host memory", "vllm": "of vLLM's share of the GPU"}


def out_of_memory(trial: Trial, death: Death, seen: Seen | None) -> Iterator[str]:
    """Where it ran out, what was foreseen, and what to do: a line each."""
    foreseen, file = trial.estimate, path_shown(trial.run.config.file)
    where = f" in {seen.during}" if seen is not None else ""
    had = f", with {gib(death.needed)} needed" if death.needed else ""
    span = f"{number(foreseen.needed.low)} to {number(foreseen.needed.high)} of {gib(foreseen.usable)} were foreseen"
    verdict = "as foreseen" if foreseen.verdict == "does-not-fit" else "not as foreseen"
    yield f"ran out {PLACES.get(death.cause, 'of memory')}{where}{had}: {span}, {verdict}"
    yield f"help: `advisor check {file}` shows edits that fit; `advisor oom LOG --config {file}` explains a whole log"
