"""What a tiled MLP holds while it computes: the intermediates of one tile, and what is summed over all of them.

axolotl/monkeypatch/tiled_mlp/base.py:190-335@0.19.0; under DeepSpeed
deepspeed/runtime/sequence_parallel/ulysses_sp.py:899-973@0.18.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.memory.activations.adapted_output import adapter_gradients, half_adapter_gradients
from advisor.memory.activations.amounts import Amount, Moment, total, widths
from advisor.memory.activations.dtypes import Numbers, adapters, numbers_of
from advisor.memory.activations.feedforward import mlp_amounts
from advisor.memory.activations.layer import input_amounts
from advisor.memory.activations.linear_inputs import is_output, mlp_input, mlp_output
from advisor.memory.activations.product import product_gradients
from advisor.memory.activations.tiles import tile_tokens
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.lora_targets import is_target, rank_at
from advisor.models.layer_variant import LayerVariant
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Block, LinearShape
    from advisor.run import Run


def tiled_bytes(run: Run, block: Block) -> int:
    """The most that a tiled MLP's backward holds next to what it reads: in its last tile, or as the sums are added."""
    sums = trained_bytes(run, block)
    output = tile_tokens(run, block) * total([(numbers_of(run, block).inner, "h")], widths(run, block))
    if run.zero is not None:
        return tile_bytes(run, block) + sums + last_gradient(run, block)
    known = _known_gradient(run, block)
    return max(tile_bytes(run, block) + sums + last_gradient(run, block) - known, output + 2 * sums - known)


def tile_bytes(run: Run, block: Block) -> int:
    """The most that the backward of one tile holds, gradients of weights aside.

    Autocast ends with the forward, so a tile is computed again without it.
    """
    one = alone(run)
    family, _ = family_and_norm(one, block)
    n = replace(numbers_of(one, block), normed=numbers_of(run, block).normed)
    known = widths(run, block)
    kept = total(_kept(one, n, family, block), known)
    return tile_tokens(run, block) * (kept + max(total(moment, known) for moment in _moments(one, n, family, block)))


def gradients_left(run: Run, block: Block) -> int:
    """What there is of an MLP's gradients behind its backward that ``gradients`` has not: those of this micro-step."""
    if run.zero is not None or run.gradient_accumulation_steps > 1:
        return 0
    return trained_bytes(run, block) - _known_gradient(run, block)


def last_gradient(run: Run, block: Block) -> int:
    """Bytes of the gradient of the MLP's last weight, which a tile makes first, before it is added to the sum."""
    return run.compute_bytes * sum(x.n_in * x.n_out for x in _outputs(block)) if run.lora is None else 0


def _known_gradient(run: Run, block: Block) -> int:
    """The same, where ``layer_ends.passed_gradients`` counts it with what backward has passed."""
    first = run.sharding is None and run.gradient_accumulation_steps == 1
    return last_gradient(run, block) if first else 0


def _outputs(block: Block) -> list[LinearShape]:
    """The MLP's last linear."""
    return [x for x in block.linears if x.kind == "mlp" and is_output(x, block)]


@lru_cache(maxsize=16)
def alone(run: Run) -> Run:
    """The run as the backward computes a tile again: whole, and without autocast."""
    return replace(run, tiled_mlp_shards=None, autocast=False)


def _kept(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """What a tile's forward keeps, with its output; not the part of the MLP's input that it reads."""
    yield n.inner, "h"
    yield from mlp_amounts(run, n, family, block)
    yield from input_amounts(run, n, [*mlp_input(run, n, block), *mlp_output(run, n, block)])
    if n.trained or _shares_input(run, n, block):
        yield -n.normed, "h"


def _shares_input(run: Run, n: Numbers, block: Block) -> bool:
    """Whether adapters of the first linears keep the MLP's input as it is."""
    read = [x for site in mlp_input(run, n, block) for x in site.linears]
    return any(is_target(run.lora, x) for x in read if run.lora is not None) and not adapters(run, n.normed).own


def _moments(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Moment]:
    """The moments of a tile's backward that can be its widest."""
    yield list(adapter_gradients(run, n, block))
    yield list(half_adapter_gradients(run, n, block))
    yield [(n.inner, "f")]
    yield list(product_gradients(run, n, family, block))


def trained_bytes(run: Run, block: Block) -> int:
    """Bytes of the gradients of an MLP's trained weights: axolotl's sums have the weights' dtype (base.py:282-287)."""
    mlp = [linear for linear in block.linears if linear.kind == "mlp"]
    if run.lora is None:
        return run.compute_bytes * sum(linear.n_in * linear.n_out for linear in mlp)
    width, lora = adapters(run, run.compute_bytes).weight, run.lora
    return width * sum(rank_at(lora, x.path) * (x.n_in + x.n_out) for x in mlp if is_target(lora, x))
