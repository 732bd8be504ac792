"""What is kept of a run that was measured: sizes, and of which kind it was."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

from advisor.memory import Estimate
from advisor.memory.run_kind import expandable_segments, kind_of
from advisor.memory.seen_before import family_of, parameters_of
from advisor.run import Run
from advisor.run.history import MeasuredRun

NO_GPU = "cpu"
"""In place of a card, for a run that no estimate is narrowed by."""


def measured_run(
    run: Run, found: Estimate, *, allocated: int, reserved: int, steps: int, seconds: float | None, gpu: bool = True
) -> MeasuredRun:
    """The record of a run; ``seconds`` of a step, where they were measured. Bytes of one GPU."""
    assert run.hardware is not None, "the estimate has no hardware"
    return MeasuredRun(
        kind=kind_of(run),
        gpu=run.hardware.gpu.id if gpu else NO_GPU,
        gpus=run.world_size,
        expandable=expandable_segments(run),
        estimated=found.allocated_peak,
        allocated=allocated,
        reserved=max(reserved, allocated),
        steps=steps,
        torch=run.stack.torch,
        tokens_per_second_per_gpu=pace(run, seconds) if seconds else 0.0,
        family=family_of(run),
        parameters=parameters_of(run),
    )


def of_a_step(ends: Sequence[float]) -> float | None:
    """Seconds of a step at the median, by when each ended; None of fewer than two."""
    taken = [end - start for start, end in pairwise(ends)]
    return statistics.median(taken) if taken else None


def pace(run: Run, seconds: float) -> float:
    """Tokens a second on each GPU, rows counted at their longest."""
    return run.tokens * run.gradient_accumulation_steps / seconds
