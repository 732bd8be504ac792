"""The usual values of a key, by method, by what is trained and by the size of the model: ``bands.json``."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

from advisor.record import record
from advisor.run import Run

Training = Literal["full", "lora", "qlora"]
"""All weights, or an adapter."""
BANDS = Path(__file__).with_name("bands.json")


@record(kw_only=True)
class Band:
    """A row of ``bands.json``: what ``key`` usually is for these methods, and whence that is known.

    ``at_least`` and ``below``: parameters of the model, None without an end. ``weak``: the sources disagree or are few.
    """

    key: str
    methods: tuple[str, ...]
    training: tuple[Training, ...]
    at_least: float | None = None
    below: float | None = None
    default: float
    low: float
    high: float
    source: str
    weak: bool = False

    def holds_for(self, parameters: int | None) -> bool:
        """Whether it is for models of this size; of an unknown size, whether it is for all."""
        if parameters is None:
            return self.at_least is None and self.below is None
        return (self.at_least or 0) <= parameters and (self.below is None or parameters < self.below)


@cache
def bands() -> tuple[Band, ...]:
    """All rows."""
    table: Any = json.loads(BANDS.read_text(encoding="utf-8"))
    return tuple(_band(**row) for row in table["rows"])


def _band(*, methods: list[str], training: list[Training], **row: Any) -> Band:
    return Band(methods=tuple(methods), training=tuple(training), **row)


def method_of(run: Run) -> str:
    """What a run learns from, as ``bands.json`` names it: ``rl`` where that is set, else ``sft`` and its siblings."""
    if run.rl is not None:
        return run.rl
    if run.classifier is not None:
        return "reward-model" if run.classifier == "sequence" else "process-reward-model"
    if not run.config.get("pretraining_dataset"):
        return "sft"
    return "pretraining-from-scratch" if run.is_on("reinit_weights") else "pretraining"


def band_of(run: Run, training: Training | None = None, key: str = "learning_rate") -> Band | None:
    """What ``key`` usually is in a run, as it is or as one that trains otherwise; None where no source says."""
    method, chosen = method_of(run), training or run.adapter or "full"
    parameters = run.model.parameters if run.model is not None else None
    for band in bands():
        if band.key == key and method in band.methods and chosen in band.training and band.holds_for(parameters):
            return band
    return None
