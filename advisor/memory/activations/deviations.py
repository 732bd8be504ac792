"""The deviations of a run's decoder, and the norm of its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.models.deviations import LLAMA

if TYPE_CHECKING:
    from advisor.models.architecture import Block
    from advisor.models.deviations import Deviations, Norm
    from advisor.run import Run


def family_and_norm(run: Run, block: Block) -> tuple[Deviations, Norm]:
    """What the run's decoder does differently from Llama, and the norm of its layers."""
    family = run.model.deviations if run.model is not None else LLAMA
    if ("layer_norm" if block.norm == "layer" else "rms_norm") in run.liger:
        return family, "liger"
    return family, family.norm or ("layer" if block.norm == "layer" else "rms")
