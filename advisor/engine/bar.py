"""Steps that regroup the GPUs: taken only where a step of training is much faster, whatever the constants are."""

from advisor.run import Run
from advisor.speed import StepTime, step_time
from advisor.speed.constants import Constants
from advisor.speed.stretched import sets_of_constants

REGROUPING = frozenset({"hsdp", "hpz"})
"""The rules that must clear the bar: they take memory on every GPU, and gain what the network is slow."""
BAR = 0.9
"""Of the time without: what leaves more of it, with the shipped constants or any stretched ones, is not worth that."""


def clears_the_bar(without: Run, run: Run) -> bool:
    """Whether a step of ``run`` takes so much less, by each set of constants."""
    for constants in sets_of_constants().values():
        slow, fast = _seconds(without, constants), _seconds(run, constants)
        if slow is None or fast is None or fast > BAR * slow:
            return False
    return True


def _seconds(run: Run, constants: Constants) -> float | None:
    """Of a step by some constants; the few that are kept for the shipped ones stay kept."""
    found = step_time.__wrapped__(run, constants=constants)
    return found.expected if isinstance(found, StepTime) else None
