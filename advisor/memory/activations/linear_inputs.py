"""Where a layer's linears read: tensors that are kept for the gradients of weights and adapters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers, adapters
from advisor.memory.activations.fake_quantized import keeps_inputs
from advisor.memory.activations.lora_kernels import fused, fused_amounts
from advisor.memory.activations.site import Site
from advisor.memory.activations.tiles import tiles
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.lora_targets import is_target, rank_at

if TYPE_CHECKING:
    from advisor.models.blocks import Block, LinearShape
    from advisor.run import Lora, Run

OUTPUTS = {
    "o_proj", "out_proj", "c_proj", "dense", "wo", "o", "attn_out", "resid_attn_dropout",
    "down_proj", "dense_4h_to_h", "fc2", "w2", "fc_out", "linear_2", "ff_out",
    "proj", "projection_layer", "linear_fc2", "output_linear", "mlp_down",
}  # fmt: skip
"""Names of the projections that end attention or MLP."""


def is_output(linear: LinearShape, block: Block) -> bool:
    """Whether a linear leads back to the residual stream."""
    return linear.n_out == block.hidden and linear.name in OUTPUTS


def sites(run: Run, n: Numbers, block: Block, copied_output: bool) -> list[Site]:
    """The inputs of a layer's linears; with one norm for both, attention and MLP read the same tensor."""
    attention = [x for x in block.linears if x.kind in {"attention", "mixer"}]
    attention_in = [x for x in attention if not is_output(x, block)]
    mlp_in = [x for x in _of_mlp(run, block, "mlp", "router") if not is_output(x, block)]
    wide = [x for x in attention_in if x.n_in == block.hidden]
    starts = [[*wide, *mlp_in]] if block.norms == 1 else [*_inputs_of_mixers(block, wide), mlp_in]
    taken = fused(run, block)
    found = [Site("h", tuple(one), n.normed, fused=taken) for one in starts if one]
    if block.mlp is not None and block.mlp.experts and not mlp_in:
        # The router is a bare weight in transformers 5 (models/mixtral, MixtralTopKRouter): no
        # linear stands for it.
        found.append(Site("h", (), n.normed))
    # Low-rank projections (MLA) read a narrow tensor each.
    found += [Site(ONE, (x,), n.compute, units=x.n_in) for x in attention_in if x.n_in != block.hidden]
    outputs = tuple(x for x in attention if is_output(x, block) and not _in_scan(x, block))
    if outputs and block.attention is not None and block.attention.kind in {"softmax", "latent"}:
        found.append(Site("out", outputs, n.compute, kept_anyway=not copied_output, fused=taken))
    elif outputs:
        found.append(Site(ONE, outputs, n.compute, units=outputs[0].n_in))
    # Gemma's per-layer input stands behind the layer, and reads the residual stream itself.
    others = [x for x in block.linears if x.kind == "other"]
    found += [Site(ONE, (x,), n.stream if x.n_in == block.hidden else n.compute, units=x.n_in) for x in others]
    return [*found, *mlp_output(run, n, block)]


def _in_scan(linear: LinearShape, block: Block) -> bool:
    """Whether Mamba-2's kernel multiplies by this weight itself, past any adapter, and computes its input again."""
    return block.states is not None and block.states.chunk > 0 and linear.kind == "mixer" and is_output(linear, block)


def _of_mlp(run: Run, block: Block, *kinds: str) -> list[LinearShape]:
    """The linears of an MLP whose inputs are kept: none of a tiled one."""
    return [] if tiles(run, block) else [x for x in block.linears if x.kind in kinds]


def _inputs_of_mixers(block: Block, wide: list[LinearShape]) -> list[list[LinearShape]]:
    """Linears by the tensor that they read: where a Mamba mixer is side by side with attention, each reads its own.

    models/falcon_h1, FalconH1DecoderLayer.forward@5.16.1: the normed input, multiplied by different numbers.
    """
    if block.states is None or not block.states.scaled:
        return [wide]
    return [[x for x in wide if x.kind == kind] for kind in ("mixer", "attention")]


def mlp_input(run: Run, n: Numbers, block: Block) -> list[Site]:
    """What the inner linears of the MLP read; with experts, those of the shared one."""
    linears = tuple(x for x in _of_mlp(run, block, "mlp") if not is_output(x, block))
    return [Site("h", linears, n.normed, fused=fused(run, block))] if linears else []


def mlp_output(run: Run, n: Numbers, block: Block) -> list[Site]:
    """The product that the last linear of the MLP reads; with experts, only a shared one has linears.

    In fp32 from an activation that autocast runs so: torch/amp, CUDA ops that autocast to float32@2.13.0.
    """
    outputs = tuple(x for x in _of_mlp(run, block, "mlp") if is_output(x, block))
    shared = block.mlp is not None and block.mlp.experts > 0
    plain, wide = family_and_norm(run, block)[0].activation
    source = 4 if n.autocast and wide > plain else n.inner
    return [Site("f shared" if shared else "f", outputs, source, fused=fused(run, block))] if outputs else []


def site_amounts(run: Run, n: Numbers, site: Site) -> Iterator[Amount]:
    """What one input keeps: for the weights' gradients, or for the adapters' alone."""
    if n.trained and not keeps_inputs(run):
        return
    if n.trained:
        # Autocast casts a tensor again for each linear; it caches casts of weights only
        # (ATen/autocast_mode.cpp).
        copies = max(1, len(site.linears)) if site.source != n.compute else 1
        if not site.kept_anyway:
            yield copies * n.compute * site.units, site.symbol
    elif run.lora is not None:
        yield from _adapter_amounts(run, run.lora, site)


def _adapter_amounts(run: Run, lora: Lora, site: Site) -> Iterator[Amount]:
    """What adapters at one input keep: copies of it, dropout masks, and the products with A for B's gradient."""
    yield from fused_amounts(lora, site)
    targets = [linear for linear in site.linears if is_target(lora, linear) and linear.name not in site.fused]
    if not targets:
        return
    kept = adapters(run, site.source)
    if kept.own:
        yield len(targets) * kept.width * site.units, site.symbol
    elif not site.kept_anyway:
        yield kept.width * site.units, site.symbol
    if kept.dropout:
        yield len(targets) * site.units, site.symbol
    for linear in targets:
        rank = rank_at(lora, linear.path)
        yield (kept.width, "r") if rank == lora.rank else (kept.width * rank, ONE)
