"""What is live for a moment in addition to what is saved: the gradients of a layer's intermediates.

Backward frees a saved tensor once it has been used, so each moment adds the gradients that exist and takes
off what is freed by then; the widest moment counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.memory.activations import routed
from advisor.memory.activations.adapted_output import (
    adapted_outputs,
    adapter_gradients,
    freed_by_adapters,
    half_adapter_gradients,
)
from advisor.memory.activations.altup import altup_gradients
from advisor.memory.activations.amounts import ONE, Amount, Moment, freed, total, widths
from advisor.memory.activations.approximate import projected_width
from advisor.memory.activations.attention import attention_amounts, copied_output, keeps_scores, repeated
from advisor.memory.activations.dtypes import Numbers, numbers_of
from advisor.memory.activations.evaluation import tiled_forward_bytes
from advisor.memory.activations.experts import passing_weights, quantized
from advisor.memory.activations.fake_quantized import passing_in_quantizers
from advisor.memory.activations.feedforward import (
    dense_amounts,
    has_shared_gate,
    mlp_amounts,
)
from advisor.memory.activations.float8 import casting_to_float8
from advisor.memory.activations.from_trace import measured
from advisor.memory.activations.kept_inputs import dora_peak_bytes
from advisor.memory.activations.layer import amounts
from advisor.memory.activations.layer_inputs import gate_amounts, waiting_gradients, width_of
from advisor.memory.activations.linear_inputs import is_output, mlp_input, mlp_output, site_amounts, sites
from advisor.memory.activations.lora_kernels import fused_backward_peak_bytes, fused_forward_peak_bytes, fuses_mlp
from advisor.memory.activations.norms import norm_amounts, rms_amounts
from advisor.memory.activations.product import product_gradients
from advisor.memory.activations.recomputed import (
    at_last_linear,
    recomputed_forward,
    recomputed_four_bit,
    recomputed_output,
)
from advisor.memory.activations.recomputed_experts import recomputed_experts
from advisor.memory.activations.recomputed_int8 import (
    held_by_int8,
    quantized_int8,
    recomputed_int8,
    unpacking_bytes,
)
from advisor.memory.activations.ring import ring_gradients
from advisor.memory.activations.state_spaces import in_pieces, scan_gradients
from advisor.memory.activations.tiled import gradients_left, tiled_bytes
from advisor.memory.activations.tiles import tiled_input, tiles
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.models.layer_variant import LayerVariant, NormVariant

if TYPE_CHECKING:
    from advisor.models.blocks import Attention, Block
    from advisor.run import Run


@lru_cache(maxsize=16)
def backward_peak_bytes(run: Run, block: Block) -> int:
    """The most that one layer's backward holds in addition to the saved tensors of this and earlier layers."""
    unpacking = unpacking_bytes(run, block) if run.activation_checkpointing else 0
    return max(_backward_bytes(run, block), unpacking)


def _backward_bytes(run: Run, block: Block) -> int:
    """Likewise, but for the recomputed forward of experts in 8 bits."""
    output = recomputed_output(run, numbers_of(run, block), block)
    weights = passing_weights(run, run.compute_bytes, block) + passing_in_quantizers(run, block)
    weights += casting_to_float8(run, block)
    held = measured(run, block, "working", derived_bytes) + run.tokens * output + weights
    return max(held, dora_peak_bytes(run, numbers_of(run, block), block))


@lru_cache(maxsize=16)
def dequantized_peak_bytes(run: Run, block: Block) -> int | None:
    """The most while a base weight is there in half precision: at the MLP's last linear, whose adapter comes first.

    None where that moment is not told apart from the others, but for that in which experts are unpacked.
    """
    if quantized(run) and block.mlp is not None and block.mlp.experts:
        return _shared_bytes(run, block)
    if block.mlp is None or block.mlp.experts or block.states or block.traces:
        return None
    if fuses_mlp(run, block) or tiles(run, block):
        return None
    family, _ = family_and_norm(run, block)
    n = numbers_of(run, block)
    given = [(kept.cast, site.symbol) for site, kept in adapted_outputs(run, n, block)]
    moment = [*_starting_gradients(n, family, block), *given, (n.compute, "f"), *freed_by_adapters(run, n, block)]
    return run.tokens * (total(moment, widths(run, block)) + recomputed_output(run, n, block))


def stack_gradient_bytes(run: Run, block: Block) -> int:
    """At the gradient of experts' first stack, what there is in addition to what is saved, without that gradient.

    That of the product, and of the inputs in their order, which are kept for it; of the experts' rest nothing is left:
    integrations/moe.py, grouped_mm_experts_forward@5.16.1.
    """
    mlp = block.mlp
    assert mlp is not None
    family, norm = family_and_norm(run, block)
    n = numbers_of(run, block)
    m, chosen = routed.of_experts(run, n), mlp.experts_per_token
    made = (chosen * m.compute * (2 if mlp.gated else 1), "f"), (2 * chosen * m.compute, "routed")
    behind = (*freed(routed.expert_amounts(run, n, family, mlp)), *_freed_before_experts(run, n, family, norm, block))
    per_token = total([(n.stream, "h"), *made, *behind], widths(run, block))
    return run.tokens * (per_token + recomputed_output(run, n, block))


def _shared_bytes(run: Run, block: Block) -> int:
    """Likewise at the last linear of what all tokens pass next to experts, when those are still to come."""
    family, _ = family_and_norm(run, block)
    n = numbers_of(run, block)
    given = [(kept.cast, site.symbol) for site, kept in adapted_outputs(run, n, block)]
    product = [(n.inner, site.symbol) for site in mlp_output(run, n, block)]
    moment = [*_starting_gradients(n, family, block), *given, *product, *freed_by_adapters(run, n, block)]
    return run.tokens * (total(moment, widths(run, block)) + recomputed_output(run, n, block))


def last_weight_bytes(block: Block) -> int:
    """Bytes of the base weight that is there in half precision at that moment: the MLP's last."""
    return max((2 * x.n_in * x.n_out for x in block.linears if x.kind == "mlp" and is_output(x, block)), default=0)


def derived_bytes(run: Run, block: Block) -> int:
    """The widest moment of the backward by the formulas."""
    family, norm = family_and_norm(run, block)
    n = numbers_of(run, block)
    known = widths(run, block)
    per_token = max((total(moment, known) for moment in moments(run, n, family, norm, block)), default=0)
    waiting = run.tokens * total(list(waiting_gradients(run, n, block)), known)
    kernels = fused_backward_peak_bytes(run, n, known, block) if fuses_mlp(run, block) else 0
    alone = (
        run.tokens * (total([(24 + n.stream, "h")], known) - total(amounts(run, block), known))
        if _is_alone(block) or (tiles(run, block) and block.norm == "rms")
        else 0
    )
    mlp = _tiled_mlp_bytes(run, n, family, norm, block) if tiles(run, block) else 0
    return max(0, run.tokens * per_token, _last_norm_bytes(run, n, family, norm, block), kernels, alone, mlp) + waiting


def _tiled_mlp_bytes(run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block) -> int:
    """The widest moment of a tiled MLP, computed again or gone through backward, and of the norm before it."""
    stream, used_mask, branch = _starting_gradients(n, family, block)
    held = run.tokens * total(
        [stream, used_mask, branch, (n.normed, "h"), *_freed_before_mlp(run, n, norm, block)], widths(run, block)
    )
    found = [held + tiled_bytes(run, block), _norm_before_bytes(run, n, norm, block)]
    if block.attention is not None:
        # Gradients of its output, of queries twice while they are rotated back, of keys and values.
        passing = [(4 * n.compute, "q"), (n.compute, "k"), (n.compute, "v")]
        behind = freed(_after_attention(run, n, family, norm, block))
        found.append(run.tokens * total([stream, *passing, *behind], widths(run, block)))
    if run.activation_checkpointing:
        waiting = list(at_last_linear(run, n, family, block))
        found.append(
            run.tokens * total([*waiting, (-n.normed, "h")], widths(run, block)) + tiled_forward_bytes(run, block)
        )
    return max(found)


def _norm_before_bytes(run: Run, n: Numbers, norm: NormVariant, block: Block) -> int:
    """The backward of the norm before a tiled MLP, whose input has gone; where the tiles are small it is the widest."""
    if norm not in {"rms", "fp32 rms", "offset rms", "liger"} or block.norms < 2:
        return 0
    moment = [*_last_norm(n, norm), *freed(tiled_input(run, n, block))]
    return run.tokens * total(moment, widths(run, block)) + gradients_left(run, block)


def forward_peak_bytes(run: Run, block: Block) -> int:
    """What the forward of the last layer holds that it does not save: at an fp32 adapter of its down projection.

    Or in a fused MLP with DoRA, or while experts are unpacked.
    """
    family, _ = family_and_norm(run, block)
    n = numbers_of(run, block)
    if block.mlp is None or run.activation_checkpointing:
        return 0
    if fuses_mlp(run, block):
        return fused_forward_peak_bytes(run, n, widths(run, block))
    adapted = run.tokens * total(recomputed_forward(run, n, family, block), widths(run, block))
    return max(adapted, unpacking_bytes(run, block))


def _is_alone(block: Block) -> bool:
    """Whether a layer is nothing but attention or an MLP, with one norm before it, whose gradient is the widest."""
    return (block.attention is None) != (block.mlp is None) and block.norm == "rms"


def _last_norm_bytes(run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block) -> int:
    """The moment of a norm at the end of the MLP, where there is one; ``1 + weight`` of Gemma's is freed by then."""
    if block.norms < 4 and not family.post_norm:
        return 0
    amounts = total(_last_norm(n, norm), widths(run, block))
    return run.tokens * amounts - (4 * block.hidden if norm == "offset rms" else 0)


def moments(run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block) -> Iterator[Moment]:
    """The moments of a layer's backward that can be its widest, from the layer's end to its start."""
    stream, used_mask, branch = _starting_gradients(n, family, block)
    narrow = _narrow_gradient(n, family, block)
    yield list(altup_gradients(n, block))
    if block.mlp is None and block.states is None:
        yield [stream, (n.compute * projected_width(block), ONE)]
    elif block.mlp is not None and not fuses_mlp(run, block) and not tiles(run, block):
        behind = list(_freed_before_mlp(run, n, norm, block))
        yield [stream, used_mask, branch, *adapter_gradients(run, n, block), *behind]
        yield [stream, used_mask, *half_adapter_gradients(run, n, block), *behind]
        yield [stream, used_mask, branch, (n.inner, "f shared" if block.mlp.experts else "f"), *behind]
        behind += _freed_before_experts(run, n, family, norm, block) if block.mlp.experts else ()
        yield [stream, used_mask, narrow, *product_gradients(run, n, family, block), *behind]
        if block.mlp.experts:
            yield [
                stream,
                *routed.routed_gradients(run, n, family, block.mlp),
                *_freed_before_experts(run, n, family, norm, block),
            ]
            yield [stream, *recomputed_experts(run, n, family, block, narrow)]
        if run.activation_checkpointing:
            held = list(held_by_int8(run, n, family, block))
            yield [*recomputed_forward(run, n, family, block), *held]
            yield [*recomputed_int8(run, n, family, block), *held]
            yield [*quantized_int8(run, n, family, block), *held]
            yield list(recomputed_four_bit(run, n, family, block))
    if block.attention is not None and probabilities(run, family, block.attention):
        yield [stream, *_probability_gradients(run, n, family, norm, block)]
    if block.attention is not None and run.context_parallel_size > 1:
        yield [
            stream,
            (n.compute, "q"),
            *ring_gradients(run, n, block.attention),
            *freed(_after_attention(run, n, family, norm, block)),
        ]
    if block.states is not None:
        waiting = [stream, *(() if in_pieces(run) else _gradients_before_scan(n, family, block))]
        behind = list(freed(_after_scan(run, n, family, norm, block)))
        for moment in scan_gradients(run, n, block.states):
            yield [*waiting, *moment, *behind]


def _starting_gradients(n: Numbers, family: LayerVariant, block: Block) -> tuple[Amount, Amount, Amount]:
    """What stands at the start of a layer's backward: the stream's gradient, a mask that was used, a branch's own."""
    own = family.residual_masks or family.scales_residual
    branch = (n.compute, "h") if own and n.inner == n.compute else _narrow_gradient(n, family, block)
    # A layer that widens the stream casts the gradient of what entered it.
    stream = n.returned + (n.stream if n.returned != n.stream else 0)
    return (stream, "h"), (-1 if family.residual_masks else 0, "h"), branch


def _narrow_gradient(n: Numbers, family: LayerVariant, block: Block) -> Amount:
    """Where the stream is wider than what adapters compute, parallel branches each wait for a narrow gradient."""
    return (n.compute if n.inner != n.compute and (family.parallel or block.norms == 1) else 0, "h")


def _after_scan(run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block) -> Iterator[Amount]:
    """What is kept behind a Mamba mixer: the MLP, and attention where it is side by side with it."""
    if block.mlp is not None:
        yield from _after_attention(run, n, family, norm, block)
    if block.attention is not None and block.attention.kind == "softmax":
        yield from attention_amounts(run, n, family, norm, block)


def _gradients_before_scan(n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """What a Mamba mixer's backward starts from, where that is not the gradient of the residual stream itself."""
    if family.scales_residual or n.stream != n.compute:
        yield n.compute, "h"
    if block.states is not None and block.states.scaled:
        # That of what attention has read, whose backward comes first.
        yield n.compute, "h"


def probabilities(run: Run, family: LayerVariant, attention: Attention) -> bool:
    """Whether attention's probabilities exist as a tensor."""
    softmax = attention.kind in {"softmax", "latent"}
    return softmax and keeps_scores(run, family, attention)


def _last_norm(n: Numbers, norm: NormVariant) -> Moment:
    """A norm at the end of the MLP: fp32 gradients of square, mean, root and product at once, its root freed."""
    if norm == "liger":
        return [(2 * n.stream, "h")]
    if not n.trained:
        return [(20 + n.stream, "h"), (-4, ONE)]
    return [(18 + n.stream - (2 if norm != "rms" else 0), "h"), (-4, ONE)]


def _probability_gradients(
    run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block
) -> Iterator[Amount]:
    """Attention in plain operations at its softmax: three fp32 gradients a score; all that follows is freed.

    That of the probabilities, its product with them inside CUDA's kernel, and that of the scores:
    aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out@2.13.0.
    """
    attention = block.attention
    assert attention is not None
    yield from ((12, "heads S"), (n.compute, "q"))
    copies = list(repeated(n, attention))
    yield from freed(copies[1:])
    if n.compute != 4 and run.attention == "eager":
        yield -n.compute, "heads S"
    yield from freed(_after_attention(run, n, family, norm, block))


def _after_attention(run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block) -> Iterator[Amount]:
    """What is kept behind the attention kernel: the output projection's input, the MLP's norm, and the MLP."""
    behind = sites(run, n, block, copied_output(run, family, block))
    first = next((site for site in behind if site.symbol == "h"), None)
    for site in behind:
        if site is not first:
            yield from site_amounts(run, n, site)
    norms = list(norm_amounts(n, norm, family, block))
    # Of four, one comes before attention: the output of the sublayer has a norm of its own.
    yield from norms[len(norms) // (4 if block.norms == 4 else 2) :]
    yield from mlp_amounts(run, n, family, block)
    yield from tiled_input(run, n, block)


def _freed_before_experts(
    run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block
) -> Iterator[Amount]:
    """What is freed before the backward of the experts: a norm at the end, and what computed after them.

    Each leaves a gradient of the width of the residual stream, and frees what it kept.
    """
    mlp = block.mlp
    assert mlp is not None
    # Gemma 4 has one norm more behind its experts, and another behind both branches.
    for _ in range(2 if block.norms > 6 else 1 if family.post_norm or block.norms >= 4 else 0):
        yield n.compute, "h"
        yield from freed(rms_amounts(n, norm, "h", ONE))
    if not mlp.shared_width:
        return
    if not family.shared_first or has_shared_gate(block):
        yield n.compute, "h"
    if family.shared_first:
        return
    yield from freed(dense_amounts(n, family, mlp, "f shared", recomputed="glu" in run.liger))
    # What a trained router reads, too, it still holds, unless that is a copy.
    held = n.trained and (not family.casts_router or any(linear.kind == "router" for linear in block.linears))
    for site in [*(() if held else mlp_input(run, n, block)), *mlp_output(run, n, block)]:
        yield from freed(site_amounts(run, n, site))


def _freed_before_mlp(run: Run, n: Numbers, norm: NormVariant, block: Block) -> Iterator[Amount]:
    """What is freed before the backward of the MLP of a layer with an embedding of its own.

    The norm of what was taken in and the norm at the end of the MLP, which leaves a gradient; the gate, and its inputs.
    """
    if not width_of(block):
        return
    yield n.compute, "h"
    for _ in range(2):
        yield from freed(rms_amounts(n, norm, "h", ONE))
    yield from freed(gate_amounts(run, n, block))
    for site in sites(run, n, block, copied_output=False):
        if any(linear.name.startswith("per_layer_") for linear in site.linears):
            yield from freed(site_amounts(run, n, site))
