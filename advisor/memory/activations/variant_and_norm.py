"""What varies in the layers of a run's decoder, and the norm of its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.models.layer_variant import LLAMA, XIELU
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.models.layer_variant import LayerVariant, NormVariant
    from advisor.run import Run


def family_and_norm(run: Run, block: Block) -> tuple[LayerVariant, NormVariant]:
    """What the run's decoder does differently from Llama, and the norm of its layers."""
    family = block.variant or (fused(run, run.model.variant) if run.model is not None else LLAMA)
    if ("layer_norm" if block.norm == "layer" else "rms_norm") in run.liger:
        return family, "liger"
    return family, family.norm or ("layer" if block.norm == "layer" else "rms")


def fused(run: Run, family: LayerVariant) -> LayerVariant:
    """Without what an activation in plain operations keeps, where the package with its kernel is installed.

    transformers/activations.py:259-275,315-319@5.16.1.
    """
    if not run.stack.xielu or family.activation != XIELU:
        return family
    return replace(
        family, activation=(0, 0), activation_trained=(0, 0), activation_gradient=None, activation_forward=None
    )
