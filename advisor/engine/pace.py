"""How fast a run is, and what an option costs of that."""

from advisor.engine.answer import Option
from advisor.record import record
from advisor.run import Run

SAME_TIME = 0.01
"""A part of a step that nobody would notice."""
UNSTATED = "Times need the network between the nodes: say it in `--gpus`, for example `net=400Gb/s`."


@record
class Pace:
    """How fast a run is: seconds of an optimizer step, tokens a second of all GPUs."""

    seconds: float | None = None
    tokens: float | None = None


NO_PACE = Pace()


def unstated_network(run: Run) -> str:
    """That nobody knows how fast several nodes are linked, which times need; or nothing."""
    hardware = run.hardware
    is_unstated = hardware is not None and hardware.nodes > 1 and hardware.network_bytes_per_s is None
    return UNSTATED if is_unstated and run.model is not None else ""


def more_time(option: Option, before: Pace) -> str:
    """``, +15% time``: of an optimizer step; ``a token`` where the edits change how many tokens that has."""
    if not option.steps:
        return ""
    if option.seconds is None or before.seconds is None:
        return ", time unknown"
    more, of = option.seconds / before.seconds - 1, ""
    if option.tokens_per_second is not None and before.tokens is not None:
        each = before.tokens / option.tokens_per_second - 1
        more, of = (each, " a token") if abs(each - more) > SAME_TIME else (more, "")
    return f", same time{of}" if abs(more) < SAME_TIME else f", {more:+.0%} time{of}"
