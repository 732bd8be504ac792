"""What adapters at the MLP's last linear add to a layer's widest moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import Amount, freed
from advisor.memory.activations.dtypes import Adapters, Numbers, adapters
from advisor.memory.activations.linear_inputs import mlp_output, site_amounts
from advisor.memory.activations.site import Site
from advisor.memory.lora_targets import is_target

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Run


def freed_by_adapters(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """What adapters of the MLP's last linear kept; an 8-bit base keeps an input that both read: ``int8_amounts``."""
    for site, kept in adapted_outputs(run, n, block):
        shares = run.quantization == "int8" and not kept.own
        amounts = site_amounts(run, n, site)
        yield from freed(amount for amount in amounts if not (shares and amount[1] == site.symbol))


def adapter_gradients(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """The gradient of the down projection's input, under an fp32 adapter on half precision, before the base's.

    Autocast gives it in half precision, PEFT's cast turns it into fp32, and dropout makes a second one of it.
    """
    for site, kept in adapted_outputs(run, n, block):
        if kept.cast == n.compute:
            continue
        if n.inner != n.compute:
            # Autocast casts for the adapter alone: all three gradients are as wide as what the product is.
            yield 3 * n.inner, site.symbol
            yield from freed(site_amounts(run, n, site))
            continue
        if n.stream != n.compute or not n.autocast:
            yield n.compute, "h"
        if not n.autocast:
            yield kept.cast, site.symbol
            continue
        yield (2 * kept.cast if kept.dropout else kept.cast + n.compute), site.symbol
        yield from ((-kept.width, site.symbol), (-kept.width, "r"))


def half_adapter_gradients(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """Likewise with an adapter in the compute type: its gradient, the base's, and their sum."""
    for site, kept in adapted_outputs(run, n, block):
        if kept.cast == n.compute:
            yield 3 * n.compute, site.symbol
            yield from freed_by_adapters(run, n, block)


def adapted_outputs(run: Run, n: Numbers, block: Block) -> Iterator[tuple[Site, Adapters]]:
    """The MLP's last input, where an adapter reads it."""
    for site in mlp_output(run, n, block):
        targets = [x for x in site.linears if x.name not in site.fused]
        if run.lora is not None and any(is_target(run.lora, linear) for linear in targets):
            yield site, adapters(run, site.source)
