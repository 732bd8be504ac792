"""What layers are made of: attention, and an MLP or experts, from the weights as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.xielu import Xielu
from advisor.allocations.layers.delta_nets import DeltaNet, delta_net
from advisor.allocations.layers.gated import GatedMixer
from advisor.allocations.layers.latents import Latent, latent
from advisor.allocations.layers.layers import FusedGated, Gated, PlainFeed
from advisor.allocations.layers.mixer import Mixer
from advisor.allocations.layers.order import activation_of
from advisor.allocations.layers.routers import routed
from advisor.allocations.shared import Feed
from advisor.models.layer_variant import XIELU

if TYPE_CHECKING:
    from advisor.allocations.layers.loading import Loader
    from advisor.models import Block
    from advisor.models.layer_variant import LayerVariant, NormVariant

Attends = Mixer | Latent | DeltaNet
GATED = 3
"""Linears of an MLP with a gate of its own."""


def mixer_of(
    loader: Loader, block: Block, biased: set[str], norm_kind: NormVariant, kernels: frozenset[str]
) -> Attends:
    """Attention."""
    attention = block.attention
    assert attention is not None, "known_layers.is_plain"
    if attention.kind == "latent":
        return latent(loader, block, biased)
    if attention.kind == "linear":
        return delta_net(loader, block)
    shapes = [linear for linear in block.linears if linear.kind == "attention"]
    if loader.taped.output_first:
        output, *inputs = (loader.linear(shape, bias=shape.name in biased) for shape in (shapes[-1], *shapes[:-1]))
    else:
        *inputs, output = (loader.linear(shape, bias=shape.name in biased) for shape in shapes)
    both = None
    if attention.query_key_norm:
        norm = loader.norm_module
        wide = loader.taped.norms == "before heads"
        widths = (attention.query_width, attention.key_width) if wide else (attention.head_dim,) * 2
        both = loader.norm(widths[0], norm, norm_kind), loader.norm(widths[1], norm, norm_kind)
    kind = GatedMixer if attention.gated else Mixer
    return kind(attention, tuple(inputs), output, both, kernels, loader.taped)


def feed_of(loader: Loader, block: Block, biased: set[str], variant: LayerVariant, fused: bool) -> Feed:
    """The MLP, or experts."""
    if block.mlp is not None and block.mlp.experts:
        return routed(loader, block, biased)
    shapes = [linear for linear in block.linears if linear.kind == "mlp"]
    linears = [loader.linear(shape, bias=shape.name in biased) for shape in shapes]
    drops = variant.residual_masks > 0
    assert block.mlp is not None, "known_layers.is_plain"
    if len(linears) == GATED:
        gate, up, down = linears
        return Gated(gate, up, down, fused, drops, "glu" in loader.run.liger)
    up, down = linears
    if block.mlp.gated:
        return FusedGated(up, down)
    if variant.activation == XIELU:
        numbers = [loader.plain(1, "mlp.act_fn") for _ in range(2)]
        return PlainFeed(up, down, Xielu(*numbers), drops)
    return PlainFeed(up, down, activation_of(variant), drops)
