"""What autograd saves of one decoder layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.memory.activations.altup import altup_amounts, streams
from advisor.memory.activations.amounts import Amount, total, widths, written
from advisor.memory.activations.approximate import mixer_amounts
from advisor.memory.activations.attention import attention_amounts, copied_output
from advisor.memory.activations.dtypes import Numbers, numbers_of
from advisor.memory.activations.experts import kept_weights
from advisor.memory.activations.fake_quantized import kept_by_quantizers
from advisor.memory.activations.feedforward import mlp_amounts
from advisor.memory.activations.from_trace import measured, traced_text
from advisor.memory.activations.kept_inputs import dora_amounts, dora_bytes, int8_amounts, int8_stays
from advisor.memory.activations.layer_inputs import gate_amounts
from advisor.memory.activations.linear_inputs import mlp_input, mlp_output, site_amounts, sites
from advisor.memory.activations.lora_kernels import fuses_mlp
from advisor.memory.activations.norms import layer_norm_amounts, norm_amounts
from advisor.memory.activations.site import Site
from advisor.memory.activations.state_spaces import fixed_state_bytes, state_space_amounts
from advisor.memory.activations.tiles import tiled_input
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.lora_targets import is_target
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Run


@lru_cache(maxsize=16)
def saved_bytes(run: Run, block: Block) -> int:
    """Bytes that the forward of one layer keeps for backward, for one micro-step on this GPU.

    Without half-precision copies of weights, which autocast keeps once for all layers and steps of a forward.
    """
    weights = kept_weights(run, run.compute_bytes, block) + kept_by_quantizers(run, block)
    return measured(run, block, "saved", derived_bytes) + weights


def derived_bytes(run: Run, block: Block) -> int:
    """Likewise, by the formulas."""
    return run.tokens * total(amounts(run, block), widths(run, block)) + fixed_bytes(run, block)


def first_norm_bytes(run: Run, block: Block) -> int:
    """What the norms that read the layer's input keep of it; nothing, where no gradient is asked of that input.

    Nor does an MLP without adapters keep anything that reads the same input.
    """
    family, norm = family_and_norm(run, block)
    if family.post_norm or block.traces:
        return 0
    n, apart = numbers_of(run, block), family.parallel and block.norms > 1
    reading = block if family.parallel else replace(block, norms=min(1, block.norms))
    unread = list(norm_amounts(n, norm, family, reading))
    if apart and not any(is_target(run.lora, x) for x in block.linears if x.kind == "mlp" and run.lora is not None):
        unread += mlp_amounts(run, n, family, block)
        unread += input_amounts(run, n, [*mlp_input(run, n, block), *mlp_output(run, n, block)])
    return run.tokens * total(unread, widths(run, block))


@lru_cache(maxsize=16)
def own_input_bytes(run: Run, block: Block) -> int:
    """Of what a layer keeps, its input as it came, which its checkpoint holds already."""
    family, norm = family_and_norm(run, block)
    n = numbers_of(run, block)
    if block.traces or streams(block) > 1 or family.post_norm or family.casts_stream or block.norm == "none":
        return 0
    width = {"rms": 4, "fp32 rms": 4, "offset rms": 4, "liger": n.stream, "centred": 0}.get(norm)
    if width is None:
        width = next(layer_norm_amounts(n, norm, shared=False))[0]
    return run.tokens * n.stream * block.hidden if width == n.stream else 0


@lru_cache(maxsize=16)
def saved_formula(run: Run, block: Block) -> str:
    """The arithmetic per token, with its result: ``16 h + 4 q + 4 kv + 8 f + 4 heads + 8 = 200,840 B/token``."""
    return traced_text(run, block) if block.traces else written(amounts(run, block), widths(run, block))


@lru_cache(maxsize=16)
def amounts(run: Run, block: Block) -> tuple[Amount, ...]:
    """Every kept tensor of a layer, in bytes per token. An estimate asks for those of a layer three times."""
    family, norm = family_and_norm(run, block)
    n = numbers_of(run, block)
    attention = block.attention
    if attention is not None and attention.kind != "softmax":
        mixer = list(mixer_amounts(run, n, block))
    else:
        mixer = list(attention_amounts(run, n, family, norm, block))
        mixer += state_space_amounts(run, n, block.states) if block.states is not None else ()
    inputs = list(input_amounts(run, n, sites(run, n, block, copied_output(run, family, block))))
    norms = list(norm_amounts(n, norm, family, block))
    # The fused MLP leaves out the dropout that some families have behind it.
    masks = [(family.residual_masks - fuses_mlp(run, block), "h")] if family.residual_masks else []
    scaled = [(2 * n.compute, "h")] if family.branch_scales and n.trained else []
    return (
        *norms,
        *scaled,
        *inputs,
        *masks,
        *mixer,
        *mlp_amounts(run, n, family, block),
        *gate_amounts(run, n, block),
        *altup_amounts(n, norm, block),
        *dora_amounts(run, n, block),
        *tiled_input(run, n, block),
    )


def input_amounts(run: Run, n: Numbers, read: Iterable[Site]) -> Iterator[Amount]:
    """What linears keep of the tensors that they read; what 8-bit ones keep past a checkpoint is ``lasting_bytes``."""
    for site in read:
        yield from site_amounts(run, n, site)
        if not int8_stays(run):
            yield from int8_amounts(run, site)


def fixed_bytes(run: Run, block: Block) -> int:
    """Bytes that do not grow with tokens.

    ``1 + weight`` of Gemma's and Nemotron's norms, and where each expert's tokens end.
    """
    _, norm = family_and_norm(run, block)
    count = 4 * block.mlp.experts if block.mlp is not None else 0
    if norm == "offset rms":
        count += 4 * block.hidden * block.norms
        if block.attention is not None and block.attention.query_key_norm:
            count += 8 * block.attention.head_dim
    if block.states is not None:
        count += fixed_state_bytes(numbers_of(run, block), block.states)
    count += dora_bytes(run, numbers_of(run, block), block)
    return count + (2 * block.hidden * block.norms if norm == "half layer" else 0)


def lasting_bytes(run: Run, block: Block) -> int:
    """Bytes of one layer's inputs that checkpoints do not free: see ``int8_stays``."""
    if not int8_stays(run):
        return 0
    family, _ = family_and_norm(run, block)
    read = sites(run, numbers_of(run, block), block, copied_output(run, family, block))
    kept = [amount for site in read for amount in int8_amounts(run, site, all_of_them=True)]
    return run.tokens * total(kept, widths(run, block))
