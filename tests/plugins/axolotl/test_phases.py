"""The phases of a step, by a trainer that stands in for axolotl's: its log resets torch's counters."""

import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")


class Counters:
    """A meter like torch's: one peak, which anyone may reset."""

    def __init__(self) -> None:
        self.peak = 0

    def read(self) -> tuple[int, int]:
        return self.peak, self.peak

    def restart(self) -> None:
        self.peak = 0

    def know(self, model: Any) -> None:
        """Nothing to know."""


class Trainer:
    """Evaluates and logs as transformers' does: the log comes before ``evaluate`` returns."""

    is_deepspeed_enabled = False

    def __init__(self, meter: Counters) -> None:
        self.meter = meter
        self.accelerator = SimpleNamespace(backward=lambda: None)

    def evaluate(self) -> None:
        self.meter.peak = 78
        self.log({})

    def log(self, logs: dict[str, float]) -> None:
        self.meter.restart()


def test_the_peak_of_an_evaluation_is_read_before_its_log_resets_it(tmp_path: Path):
    meter = Counters()
    trainer = Trainer(meter)
    phases = importlib.import_module("advisor.plugins.axolotl.phases").Phases(meter, tmp_path / "seen.json")
    phases.watch(trainer)
    trainer.evaluate()
    phases.end()
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["phases"]["evaluation"]["allocated"] == 78
