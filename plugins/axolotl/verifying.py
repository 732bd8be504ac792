"""``advisor verify`` in the process that trains: the config of a few steps, their rows, and what they take."""

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.cli.verifying.request import Request, changed
from advisor.cli.verifying.seen import file_of

if TYPE_CHECKING:
    from .phases import Phases


class Verification:
    """One run of a few steps. What goes wrong in here ends it: there is nothing to protect."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.phases: Phases | None = None

    def change(self, cfg: MutableMapping[str, Any]) -> None:
        """The values of the YAML and the command line, before axolotl validates them."""
        values = changed(dict(cfg), self.request)
        for key in set(cfg) - set(values):
            cfg.pop(key)
        cfg.update(values)

    def rows(self, cfg: Any) -> None:
        """Puts synthetic rows where axolotl is about to load its datasets; its own code does the rest."""
        if self.request.rows == "own":
            return
        from .synthetic import write_rows

        train, evaluation = write_rows(cfg, self.request)
        cfg.datasets, cfg.test_datasets = [train], [evaluation] if self.request.evaluates else None
        cfg.val_set_size = 0

    def begin(self) -> None:
        """The model is about to be loaded."""
        from .meters import meter_of
        from .phases import LOAD, Phases

        if self.request.cpu:
            from .kernels_on_cpu import stand_in

            stand_in()
        self.phases = Phases(meter_of(cpu=self.request.cpu), Path(self.request.folder) / file_of(_rank()))
        self.phases.enter(LOAD)

    def loaded(self, model: Any) -> None:
        """The model is there, with its adapters."""
        from .phases import SET_UP

        if self.phases is not None:
            self.phases.meter.know(model)
            self.phases.enter(SET_UP)

    def attach(self, trainer: Any) -> None:
        """The trainer is there, and says when a phase ends."""
        if self.phases is not None:
            trainer.args.eval_on_start = False
            self.phases.watch(trainer)

    def callbacks(self) -> list[Any]:
        """What the trainer calls."""
        from .phases import callback_of

        return [] if self.phases is None else [callback_of(self.phases)]

    def end(self) -> None:
        """All steps are done. ``SystemExit``, before axolotl saves the model: axolotl/train.py:230-232@0.19.0."""
        if self.phases is not None:
            self.phases.end()
        raise SystemExit(0)


def _rank() -> int:
    """This process among all."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() else 0
