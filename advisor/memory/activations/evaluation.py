"""What a layer's forward holds at once without gradients: evaluation, and the reference model's pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations import routed
from advisor.memory.activations.amounts import ONE, Amount, total, widths
from advisor.memory.activations.approximate import projected_width
from advisor.memory.activations.attention import math_amounts, repeated, without_kernel
from advisor.memory.activations.dtypes import Numbers, adapters, numbers_of
from advisor.memory.activations.experts import unpacked_bytes
from advisor.memory.activations.feedforward import of_activation
from advisor.memory.activations.from_trace import measured
from advisor.memory.activations.linear_inputs import is_output
from advisor.memory.activations.lora_kernels import forward_mlp, fuses_mlp
from advisor.memory.activations.tiles import tile_tokens, tiles
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.lora_targets import is_target
from advisor.models.layer_variant import LayerVariant
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Block, Mlp
    from advisor.run import Run


def no_grad_peak_bytes(run: Run, block: Block) -> int:
    """The most that one layer's forward holds without gradients, its input not counted."""
    weights = unpacked_bytes(run, run.compute_bytes, block)
    return measured(run, block, "forward", derived_bytes) + weights


def derived_bytes(run: Run, block: Block) -> int:
    """Likewise, by the formulas."""
    family, _ = family_and_norm(run, block)
    n = numbers_of(run, block)
    known = widths(run, block)
    moments = [list(attention(run, n, block))]
    if not tiles(run, block):
        moments += feedforward(run, n, family, block)
        return run.tokens * max(total(moment, known) for moment in moments)
    held = run.tokens * total(held_amounts(n, family), known)
    return max(run.tokens * total(moments[0], known), held + tiled_forward_bytes(run, block))


def tiled_forward_bytes(run: Run, block: Block) -> int:
    """A tiled MLP's forward: the last tile next to the outputs of the others, or all outputs and the row made of them.

    axolotl/monkeypatch/tiled_mlp/base.py:213-227@0.19.0.
    """
    family, _ = family_and_norm(run, block)
    n, known = numbers_of(run, block), widths(run, block)
    output, tile = total([(n.inner, "h")], known), tile_tokens(run, block)
    moments = dense_moments(replace(run, tiled_mlp_shards=None), n, family, block)
    widest = max(total(moment, known) for moment in moments)
    return max((run.tokens - tile) * output + tile * widest, 2 * run.tokens * output)


def held_amounts(n: Numbers, family: LayerVariant) -> list[Amount]:
    """The residual and the normed input."""
    return [(n.stream, "h"), (0 if family.post_norm else n.normed, "h")]


def feedforward(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[list[Amount]]:
    """The residual and the normed input, with the MLP at its widest."""
    held, mlp = held_amounts(n, family), block.mlp
    if mlp is None:
        yield [*held, (n.compute * projected_width(block), ONE)]
        return
    if mlp.experts:
        yield [*held, *routed.forward_product(run, n, family, mlp)]
        yield [*held, *routed.forward_output(run, n, family, mlp), (n.compute if family.shared_first else 0, "h")]
        return
    yield from ([*held, *moment] for moment in dense_moments(run, n, family, block))


def dense_moments(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[list[Amount]]:
    """An MLP's own intermediates at the moments that can be its widest."""
    mlp, lora = block.mlp, run.lora
    assert mlp is not None
    inner = [x for x in block.linears if x.kind == "mlp" and not is_output(x, block)]
    yield [(_product_width(n, family, mlp, fused=len(inner) == 1), "f")]
    if lora is not None and fuses_mlp(run, block):
        yield from forward_mlp(lora, n)
        return
    if lora is not None and any(is_target(lora, x) for x in inner):
        yield list(_adapted_projection(run, n, mlp, fused=len(inner) == 1))
    if lora is not None and any(is_target(lora, x) for x in block.linears if is_output(x, block)):
        yield list(adapted_output(run, n))


def _product_width(n: Numbers, family: LayerVariant, mlp: Mlp, fused: bool) -> int:
    """Bytes per element of the MLP's width at the product, or at the activation where there is none."""
    if family.activation_forward:
        return of_activation(n, family.activation_forward)
    if not mlp.gated:
        return 2 * n.inner
    return (4 if fused else 3) * n.inner


def _adapted_projection(run: Run, n: Numbers, mlp: Mlp, fused: bool) -> Iterator[Amount]:
    """The last inner projection with its adapter: result, the adapter's product and that product scaled.

    peft/tuners/lora/layer.py, Linear.forward@0.20.0.
    """
    kept = adapters(run, n.normed)
    if kept.cast > n.normed:
        yield kept.cast, "h"
    elif kept.width != n.normed:
        yield from ((kept.width, "h"), (kept.width, "r"))
    given = n.inner + 2 * kept.width
    before = n.inner if mlp.gated and not fused else 0
    yield given * (2 if mlp.gated and fused else 1) + before, "f"


def adapted_output(run: Run, n: Numbers) -> Iterator[Amount]:
    """The down projection with its adapter: the base's result, the product, and the adapter's casts of it."""
    kept = adapters(run, n.compute)
    casts = kept.cast + (kept.width if kept.width != kept.cast else 0) if kept.cast != n.compute else 0
    yield from ((n.compute, "h"), (n.compute + casts, "f"), (kept.width, "r"))


def attention(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """Attention in plain operations at its softmax: scores, their fp32 form and the probabilities.

    sdpa's: scores, probabilities and which of them are infinite, aten/src/ATen/native/transformers/attention.cpp,
    _safe_softmax@2.13.0.
    """
    yield n.normed, "h"
    heads = block.attention
    if heads is None or heads.kind not in {"softmax", "latent"}:
        return
    family, _ = family_and_norm(run, block)
    if without_kernel(run, family, heads):
        yield from (*math_amounts(family, heads), (5, "heads S"))
    if heads.kind != "softmax" or run.attention != "eager":
        return
    yield from ((n.compute, "q"), (n.compute, "k"))
    if heads.heads != heads.kv_heads:
        yield n.compute, "v"
    yield from repeated(n, heads)
    yield (n.compute + 8 if n.compute != 4 else 8), "heads S"
