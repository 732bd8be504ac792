"""What a forward holds while 8-bit linears and experts multiply, of a layer that is computed again or the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations import routed
from advisor.memory.activations.adapted_output import adapted_outputs
from advisor.memory.activations.amounts import ONE, Amount, freed, total, widths
from advisor.memory.activations.attention import copied_output
from advisor.memory.activations.dtypes import Numbers, adapters, numbers_of
from advisor.memory.activations.experts import quantized, stacks
from advisor.memory.activations.feedforward import mlp_amounts, shared_amounts
from advisor.memory.activations.kept_inputs import int8_amounts, int8_stays
from advisor.memory.activations.linear_inputs import mlp_input, mlp_output, site_amounts, sites
from advisor.memory.activations.recomputed import passing_results, waiting, yet_to_come
from advisor.memory.activations.variant_and_norm import family_and_norm

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.models.layer_variant import LayerVariant
    from advisor.run import Run


def held_by_int8(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """What 8-bit linears keep of a recomputed forward until that ends, where a checkpoint has it end early."""
    if int8_stays(run):
        for site in sites(run, n, block, copied_output(run, family, block)):
            yield from int8_amounts(run, site)


def recomputed_int8(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """The recomputed forward while an 8-bit base makes all that the MLP reads of its input at once.

    Sums in 32 bits, in fp16, and in the input's precision: bitsandbytes/backends/cuda/ops.py, int8_mm_dequant@0.50.2;
    the input in 8 bits, the gradient that waits, and the residual.
    """
    inner = [x for site in mlp_input(run, n, block) for x in site.linears]
    if run.quantization != "int8" or run.lora is None or len(inner) != 1 or block.mlp is None or block.mlp.experts:
        return
    yield waiting(run, n, family, block) - yet_to_come(run, n) + 1, "h"
    yield (4 + 2 + n.inner) * inner[0].n_out, ONE
    yield from freed(mlp_amounts(run, n, family, block))
    for site in mlp_output(run, n, block):
        yield from freed((*site_amounts(run, n, site), *int8_amounts(run, site)))
    for site in mlp_input(run, n, block):
        if adapters(run, site.source).own:
            yield from freed(site_amounts(run, n, site))


def quantized_int8(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """The recomputed forward while an 8-bit base turns the product into 8 bits, in which outliers are looked for.

    Half precision's copy, absolute values and what is large of them: bitsandbytes/backends/cuda/ops.py,
    int8_vectorwise_quant@0.50.2. What a linear with an adapter gets back of its gradient: see ``passing_results``.
    """
    if run.quantization != "int8" or block.mlp is None or block.mlp.experts:
        return
    for site, kept in adapted_outputs(run, n, block):
        scaled = 0 if run.reentrant else passing_results(run, n, kept)
        yield waiting(run, n, family, block) - yet_to_come(run, n) + scaled, "h"
        yield 2 + 1 + 2 + 1, site.symbol
        if kept.own:
            yield from freed(site_amounts(run, n, site))


def unpacking_bytes(run: Run, block: Block) -> int:
    """What a forward holds while 8-bit experts are unpacked, less what is saved only after that.

    The product with a factor a row comes before that with a number: bitsandbytes/functional.py,
    int8_vectorwise_dequant@0.50.2.
    """
    mlp = block.mlp
    if mlp is None or not quantized(run) or run.quantization != "int8":
        return 0
    family, _ = family_and_norm(run, block)
    n = numbers_of(run, block)
    later = [(4 * mlp.experts_per_token, "routed"), *shared_amounts(n, family, mlp)]
    named = [] if routed.of_experts(run, n).trained else list(routed.named_amounts(n, mlp))
    named.append((waiting(run, n, family, block), "h"))
    passing = total(named, widths(run, block)) - total(later, widths(run, block))
    return 4 * stacks(block).get("down", 0) + run.tokens * passing
