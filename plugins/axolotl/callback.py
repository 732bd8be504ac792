"""What torch really held while a run trained, and what was foreseen, kept for later estimates."""

import importlib
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from advisor.memory import Estimate
from advisor.run import Run
from advisor.run.history import MeasuredRun, append
from advisor.session.measuring import measured_run, of_a_step, pace
from advisor.speed import StepTime, step_time
from advisor.util import gib, seconds

Base: Any = importlib.import_module("transformers").TrainerCallback
LOG = logging.getLogger("axolotl.advisor")
TIMED_STEPS = 20
LEAST_STEPS = 2
"""The first step makes the optimizer's states, so that the second is the first whole one."""


class Peaks:
    """The running maximum of torch's peaks on this rank's GPU: axolotl's own log resets them (utils/bench.py:45-50)."""

    allocated = 0
    reserved = 0

    def sample(self) -> None:
        """Reads torch's counters, once it has CUDA in use."""
        torch: Any = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            self.allocated = max(self.allocated, torch.cuda.max_memory_allocated())
            self.reserved = max(self.reserved, torch.cuda.max_memory_reserved())


class _Pace:
    """When the first steps ended. The first step compiles and allocates, so that time counts from its end."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def tick(self) -> None:
        """A step has ended."""
        if len(self.ends) <= TIMED_STEPS:
            self.ends.append(time.monotonic())

    @property
    def seconds(self) -> float | None:
        """Of a step at the median, which an evaluation in between does not move; None of fewer than two steps."""
        return of_a_step(self.ends)


class Watch(Base):
    """Samples before each log, says predicted against actual when training ends, and keeps the run if it may."""

    def __init__(self, run: Run, estimate: Estimate, peaks: Peaks, *, record: bool) -> None:
        self.run = run
        self.estimate = estimate
        self.peaks = peaks
        self.pace = _Pace()
        self.record = record
        self.over = False

    def on_train_begin(self, _arguments: Any, state: Any, *_rest: Any, **_more: Any) -> None:
        """The model is there, and what prepared it. One rank speaks for all."""
        self.over = not state.is_world_process_zero
        self.attempt(self.peaks.sample)

    def on_step_end(self, *_arguments: Any, **_more: Any) -> None:
        """The step is done and not yet logged."""
        self.attempt(self.pace.tick)
        self.attempt(self.peaks.sample)

    def on_prediction_step(self, *_arguments: Any, **_more: Any) -> None:
        """A batch of an evaluation is done and not yet logged."""
        self.attempt(self.peaks.sample)

    def on_train_end(self, _arguments: Any, state: Any, *_rest: Any, **_more: Any) -> None:
        """Called again by some trainers."""
        self.attempt(lambda: self.finish(state.global_step))
        self.over = True

    def attempt(self, act: Callable[[], None]) -> None:
        """Runs ``act``; after the first thing that goes wrong, which is a line in the log, there is no other."""
        if self.over:
            return
        try:
            act()
        except Exception as error:
            self.over = True
            LOG.warning("not measured: %s: %s", type(error).__name__, error)

    def finish(self, steps: int) -> None:
        """Predicted against actual, in a line."""
        self.peaks.sample()
        if not self.peaks.allocated:
            LOG.info("nothing measured: torch has allocated no GPU memory")
            return
        LOG.info(compared(self.estimate, self.peaks))
        taken = self.pace.seconds
        if taken:
            LOG.info(timed(self.run, taken))
        measured = self.run.hardware
        if self.record and steps >= LEAST_STEPS and measured is not None and measured.source == "detected":
            LOG.info(
                "kept in %s for later estimates",
                append(self.measured(steps, taken)),
            )

    def measured(self, steps: int, taken: float | None) -> MeasuredRun:
        """What is kept of the run."""
        return measured_run(
            self.run,
            self.estimate,
            allocated=self.peaks.allocated,
            reserved=self.peaks.reserved,
            steps=steps,
            seconds=taken,
        )


def compared(estimate: Estimate, peaks: Peaks) -> str:
    """``peak 12.0 GiB allocated, 11.8 GiB foreseen (-1.7%); 13.1 GiB reserved, 12.1 to 14.0 GiB foreseen``."""
    off = estimate.allocated_peak / peaks.allocated - 1
    low, high = estimate.reserved_peak.low, estimate.reserved_peak.high
    return (
        f"peak {gib(peaks.allocated)} allocated, {gib(estimate.allocated_peak)} foreseen ({off:+.1%});"
        f" {gib(peaks.reserved)} reserved, {gib(low)} to {gib(high)} foreseen"
    )


def timed(run: Run, measured: float) -> str:
    """``2.31 s a step, 2.10 to 3.05 foreseen; 5,320 tokens a second on each GPU``."""
    found = step_time(run)
    foreseen = f", {seconds(found.low)} to {seconds(found.high)} foreseen" if isinstance(found, StepTime) else ""
    return f"{seconds(measured)} s a step{foreseen}; {pace(run, measured):,.0f} tokens a second on each GPU"
