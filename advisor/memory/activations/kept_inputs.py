"""What linears with more than a weight keep of tokens: 8-bit ones their inputs, DoRA's results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers, adapters
from advisor.memory.activations.experts import ends_early
from advisor.memory.activations.lora_kernels import fused
from advisor.memory.activations.tiles import tiles
from advisor.memory.lora_targets import is_target, rank_at

if TYPE_CHECKING:
    from advisor.memory.activations.site import Site
    from advisor.models.blocks import Block, LinearShape
    from advisor.run import Run


def int8_amounts(run: Run, site: Site, *, all_of_them: bool = False) -> Iterator[Amount]:
    """What 8-bit linears keep of their input, which they share, unless something else keeps that anyway.

    bitsandbytes/autograd/_functions.py, MatMul8bitLt.forward@0.50.2 keeps it as an attribute, for a gradient that
    nobody asks for.
    """
    if run.quantization != "int8" or run.lora is None:
        return
    if not any(linear.name not in site.fused for linear in site.linears):
        return
    shared = any(is_target(run.lora, x) for x in site.linears) and not adapters(run, site.source).own
    if all_of_them or not (site.kept_anyway or shared):
        yield site.source * site.units, site.symbol


def int8_stays(run: Run) -> bool:
    """Whether inputs of 8-bit linears outlive their layer: non-reentrant checkpoints free what autograd saved."""
    return run.quantization == "int8" and run.lora is not None and ends_early(run)


def _dora_targets(run: Run, block: Block) -> list[LinearShape]:
    """The linears of a layer that have DoRA's magnitudes."""
    lora = run.lora
    return [x for x in block.linears if is_target(lora, x)] if lora is not None and lora.dora else []


def dora_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """DoRA's results for the gradient of its magnitudes: of the base and of the adapter, or of both in one.

    peft/tuners/lora/dora.py, DoraLinearLayer.forward@0.20.0; axolotl/kernels/lora.py:426-450@0.19.0.
    """
    taken, tiled = fused(run, block), tiles(run, block) > 0
    for linear in _dora_targets(run, block):
        if tiled and linear.kind == "mlp":
            continue
        kept = adapters(run, n.compute)
        base = kept.width if kept.dropout and not run.autocast else n.compute
        yield (n.compute if linear.name in taken else base + kept.width) * linear.n_out, ONE


def dora_bytes(run: Run, n: Numbers, block: Block) -> int:
    """Bytes of cast weights, which dropout makes it multiply once more, by an input of its own."""
    taken, count = fused(run, block), 0
    for linear in _dora_targets(run, block):
        kept = adapters(run, n.compute)
        if linear.name not in taken and kept.dropout and kept.weight != n.compute:
            count += kept.width * linear.n_in * linear.n_out
    return count


def dora_peak_bytes(run: Run, n: Numbers, block: Block) -> int:
    """The most that DoRA's norm of a merged weight holds for a moment: the same, DoraLinearLayer.forward.

    The adapter's product is made of an identity matrix as wide as the input, of which a copy in half precision stays;
    then that product, the base weight, the scaled product and their sum, in the dtype of the input.
    """
    taken, lora, most = fused(run, block), run.lora, 0
    for linear in _dora_targets(run, block):
        if lora is None or linear.name in taken:
            continue
        kept = adapters(run, n.compute)
        square, product = linear.n_in**2, linear.n_in * linear.n_out
        made = kept.width * (square + product + linear.n_in * rank_at(lora, linear.path))
        identity = kept.weight * square if kept.width != kept.weight else 0
        casts = (kept.cast if kept.cast != kept.width else 0) + (kept.cast if kept.cast != n.compute else 0)
        most = max(most, made + identity, made + (casts + 2 * kept.cast) * product)
    return most
