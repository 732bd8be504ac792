"""When each phase of a step begins and ends, and what the meter showed meanwhile."""

import importlib
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.cli.verifying.seen import STEP
from advisor.session.measuring import of_a_step

from .meters import Meter

LOAD, SET_UP, FORWARD, BACKWARD = "load", "set-up", "forward and loss", "backward"
OPTIMIZER, EVALUATION = "optimizer step", "evaluation"


class Phases:
    """The peaks of each phase, written down whenever another one begins, so that they outlive a crash."""

    def __init__(self, meter: Meter, file: Path) -> None:
        self.meter = meter
        self.file = file
        self.during = ""
        self.peaks: dict[str, dict[str, int]] = {}
        self.ends: list[float] = []
        self.stepping = BACKWARD

    def enter(self, name: str) -> None:
        """Another phase begins; what was seen until now belongs to the one before."""
        if self.during:
            allocated, reserved = self.meter.read()
            peak = self.peaks.setdefault(self.during, {"allocated": 0, "reserved": 0})
            peak["allocated"] = max(peak["allocated"], allocated)
            peak["reserved"] = max(peak["reserved"], reserved)
        self.meter.restart()
        self.during = name
        self.write(ended=False)

    def step_ended(self) -> None:
        """The optimizer has stepped."""
        self.ends.append(time.monotonic())
        self.enter(FORWARD)

    def end(self) -> None:
        """The training is over."""
        self.enter(self.during)
        self.write(ended=True)

    def watch(self, trainer: Any) -> None:
        """Marks backward, which every trainer asks of its accelerator, and evaluation; reads before a log resets."""
        self.stepping = STEP if trainer.is_deepspeed_enabled else BACKWARD
        trainer.accelerator.backward = self.within(self.stepping, trainer.accelerator.backward)
        trainer.evaluate = self.within(EVALUATION, trainer.evaluate)
        trainer.log = self.read_before(trainer.log)

    def within(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """``act`` as a phase of its own, after which the next forward begins."""

        def marked(*arguments: Any, **named: Any) -> Any:
            self.enter(name)
            result = act(*arguments, **named)
            self.enter(FORWARD)
            return result

        return marked

    def read_before(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """``act`` once the peak is read: axolotl's log, which an evaluation ends with, resets torch's.

        axolotl/core/trainers/base.py:746-751, axolotl/utils/bench.py:59-63@0.19.0.
        """

        def late(*arguments: Any, **named: Any) -> Any:
            self.enter(self.during)
            return act(*arguments, **named)

        return late

    def write(self, *, ended: bool) -> None:
        """The figures so far, whole or not at all."""
        figures = {
            "rank": int(os.environ.get("RANK") or 0),
            "phases": self.peaks,
            "steps": len(self.ends),
            "seconds": of_a_step(self.ends),
            "host": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
            "during": self.during,
            "ended": ended,
        }
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(figures), encoding="utf-8")
        new.replace(self.file)


def callback_of(phases: Phases) -> Any:
    """What transformers' trainer calls, bound to ``phases``."""
    base: Any = importlib.import_module("transformers").TrainerCallback

    class Marks(base):
        """Phase by phase."""

        def on_step_begin(self, *_arguments: Any, **_more: Any) -> None:
            """A batch is there; what loading held is known."""
            phases.enter(FORWARD)

        def on_pre_optimizer_step(self, *_arguments: Any, **_more: Any) -> None:
            """All gradients are there. DeepSpeed's engine has stepped by now."""
            if phases.stepping == BACKWARD:
                phases.enter(OPTIMIZER)

        def on_step_end(self, *_arguments: Any, **_more: Any) -> None:
            """The step is done, and not yet logged: axolotl's log resets torch's peaks."""
            phases.step_ended()

    return Marks()
