"""What is kept outside of the layers' own graphs: checkpoints, and what belongs to no layer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.memory.activations.altup import streams
from advisor.memory.activations.amounts import ONE, total, widths
from advisor.memory.activations.attention import masked
from advisor.memory.activations.dtypes import Numbers, numbers_of
from advisor.memory.activations.fake_quantized import kept_by_head
from advisor.memory.activations.from_trace import measured, measured_outside
from advisor.memory.activations.layer_inputs import outside_amounts
from advisor.memory.activations.norms import norm_amounts
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.loss import head_is_trained
from advisor.models.layer_variant import LayerVariant
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import Block
    from advisor.run import Run


@lru_cache(maxsize=16)
def checkpoint_bytes(run: Run, block: Block) -> int:
    """Bytes that activation checkpointing keeps of one layer: its input (arXiv 1604.06174).

    Both wrappers of torch/utils/checkpoint.py@2.13.0 keep nothing else on the GPU; the random state they
    stash is on the host, and 16 bytes of the GPU's (traced: nothing of the size of an activation).
    """
    return measured(run, block, "entered", _input_bytes)


def _input_bytes(run: Run, block: Block) -> int:
    """A layer's input, as wide as the residual stream, or as all of its streams."""
    return run.tokens * streams(block) * block.hidden * numbers_of(run, block).stream


def cached_bytes(run: Run, block: Block) -> int:
    """Bytes of one layer's keys and values, as the model hands them back: with all that its fused projection gave.

    axolotl turns the cache off (axolotl/loaders/utils.py:63-64@0.19.0), other trainers leave that to the layers.
    """
    since = run.model.family.keeps_cache_until if run.model is not None else ""
    if not since or run.stack.at_least("transformers", since) or run.stack.trainer == "axolotl":
        return 0
    projected = sum(linear.n_out for linear in block.linears if linear.name == "c_attn")
    return run.tokens * projected * numbers_of(run, block).inner


def head_saved_bytes(run: Run, model: Architecture) -> int:
    """Bytes of no layer, without logits: final norm, the head's input, rotary tables, labels, a held mask."""
    kept = measured_outside(run, model, lambda one: _derived_outside(one, model))
    # GenericForTokenClassification (transformers/modeling_layers.py@5.16.1) has a dropout before its score.
    dropped = run.tokens * model.hidden_size if run.classifier == "token" else 0
    return kept + dropped + kept_by_head(run, model) + _held_mask_bytes(run, model.blocks[-1])


def _derived_outside(run: Run, model: Architecture) -> int:
    """Likewise by the formulas, without a held mask."""
    block = model.blocks[-1]
    family, norm = family_and_norm(run, block)
    n = numbers_of(run, block)
    one = replace(block, norms=1) if block.norm != "none" else block
    amounts = [*norm_amounts(n, norm, family, one), *outside_amounts(run, n, block), (8, ONE)]
    # Liger's fused loss has the head's gradient already, and lets go of its input.
    if head_is_trained(run) and run.loss != "liger-fused":
        amounts.append((n.compute, "h"))
    per_token = total(amounts, widths(run, block))
    return run.tokens * per_token + _rotary_bytes(run, n, family, model)


def _rotary_bytes(run: Run, n: Numbers, family: LayerVariant, model: Architecture) -> int:
    """Cosines and sines of one row, shared by all layers (models/llama, LlamaRotaryEmbedding.forward@5.16.1)."""
    mixers = [block.attention for block in model.blocks if block.attention is not None]
    rotating = [one for one in mixers if one.kind in {"softmax", "latent"}]
    if not rotating or not family.rotates:
        return 0
    return 2 * n.stream * rotating[-1].head_dim * run.sequence_len


def _held_mask_bytes(run: Run, block: Block) -> int:
    """The mask of all layers, which checkpointing holds as an argument: bool for sdpa, compute type for eager."""
    attention = block.attention
    if attention is None or not run.activation_checkpointing:
        return 0
    family, _ = family_and_norm(run, block)
    width = 2 if run.attention == "eager" else 1 if masked(run, family, attention) else 0
    return width * run.tokens * run.sequence_len
