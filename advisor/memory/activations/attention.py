"""What attention keeps: queries, keys, values, output, and the kernel's statistics or probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.norms import powered, rms_amounts
from advisor.models.layer_variant import LayerVariant, NormVariant
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Attention, Block
    from advisor.run import Run


def attention_amounts(run: Run, n: Numbers, family: LayerVariant, norm: NormVariant, block: Block) -> Iterator[Amount]:
    """Softmax attention of one layer, without the inputs of its linears."""
    attention = block.attention
    if attention is None:
        return
    if attention.query_key_norm:
        yield from _norm_of_queries_and_keys(n, family, norm)
    if family.rotary:
        yield family.rotary, "head_dim"
    if run.attention == "eager":
        yield from eager_amounts(n, family, attention)
    elif without_kernel(run, family, attention):
        yield from math_amounts(family, attention)
    else:
        yield from _kernel_amounts(run, n, family, block)
    if attention.value_norm:
        yield from ((4, "v"), (4, "kv heads"), *powered(family, "kv heads"))
    if attention.gated:
        yield from gate_amounts(run, n, family, attention)


def gate_amounts(run: Run, n: Numbers, family: LayerVariant, attention: Attention) -> Iterator[Amount]:
    """The gate, and the output as it was before, where the kernel does not keep that itself.

    models/qwen3_next, Qwen3NextAttention.forward; models/afmoe, AfmoeAttention.forward@5.16.1.
    """
    yield n.compute, "out"
    if family.fresh_query or keeps_scores(run, family, attention):
        yield n.compute, "out"


def _norm_of_queries_and_keys(n: Numbers, family: LayerVariant, norm: NormVariant) -> Iterator[Amount]:
    """RMS norms of queries and keys, by head or over the whole width (models/qwen3, models/olmo2@5.16.1)."""
    inner = replace(n, stream=n.inner, normed=n.inner, trained=n.trained and not family.weightless_query_key_norm)
    for symbol, heads in (("q", "heads"), ("k", "kv heads")):
        groups = ONE if family.wide_query_key_norm else heads
        yield from (*rms_amounts(inner, norm, symbol, groups), *powered(family, groups))


def _kernel_amounts(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """A fused kernel: queries, keys, values, output, and an fp32 log-sum-exp per head (arXiv 2205.14135, 3.1).

    With a mask sdpa repeats keys and values to all heads, and keeps the mask in the compute type, a layer at
    a time (integrations/sdpa_attention.py, use_gqa_in_sdpa@5.16.1).
    """
    attention = block.attention
    assert attention is not None
    under_mask = masked(run, family, attention)
    if under_mask and attention.heads != attention.kv_heads:
        yield n.compute, "q"
        yield from repeated(n, attention)
    else:
        yield from projected(n, family, block)
    if under_mask and not varlen(run):
        yield n.compute, "S"
    yield n.compute, "out"
    yield 4, "heads"


def projected(n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """Queries, keys and values as the kernel gets them; what is cut from a fused projection keeps all of it."""
    attention = block.attention
    assert attention is not None
    fused = attention.query_width + attention.key_width + attention.value_width
    whole = any(x.kind == "attention" and x.n_out == fused for x in block.linears)
    # What is wider than the kernel's inputs is cast for it, and not kept itself.
    times = 2 if whole and family.rotates and n.inner == n.compute else 1
    yield from ((times * n.compute, "q"), (times * n.compute, "k"), (n.compute, "v"))


def repeated(n: Numbers, attention: Attention) -> Iterator[Amount]:
    """Keys and values copied for each query head that shares them."""
    if attention.heads == attention.kv_heads:
        yield from ((n.compute, "k"), (n.compute, "v"))
    else:
        yield from ((n.compute, "q"), (n.compute, "out"))


def math_amounts(family: LayerVariant, attention: Attention) -> Iterator[Amount]:
    """sdpa without a kernel: everything in fp32, keys and values once for each query head, or once for all of them.

    aten/src/ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math@2.13.0.
    """
    shared = ((4, "k"), (4, "v")) if _broadcast(family, attention) else ((4, "q"), (4, "out"))
    yield from ((4, "q"), *shared, (4, "heads S"))


def eager_amounts(n: Numbers, family: LayerVariant, attention: Attention) -> Iterator[Amount]:
    """Attention in plain operations: probabilities in fp32 and in the compute type, and a capped score's tanh.

    models/llama/modeling_llama.py, eager_attention_forward@5.16.1.
    """
    yield n.compute, "q"
    yield from repeated(n, attention)
    if family.sinks:
        yield from ((n.compute, "heads S"), (n.compute, "heads"), (8, "heads"))
        return
    if attention.logit_softcap:
        yield n.compute, "heads S"
    yield 4, "heads S"
    if n.compute != 4:
        yield n.compute, "heads S"


def masked(run: Run, family: LayerVariant, attention: Attention) -> bool:
    """Whether sdpa gets a mask: rows that may be padded or packed, or a window no longer than the row.

    masking_utils.py, _ignore_causal_mask_sdpa@5.16.1: a mask of ones is dropped if no window is as short as the row.
    """
    if run.attention != "sdpa":
        return False
    padded = run.micro_batch_size > 1 or run.paired or run.pads_to_sequence_len or run.sample_packing
    windowed = attention.window is not None and attention.window <= run.sequence_len
    return family.always_masked or windowed or (padded and run.stack.padding != "packed")


def varlen(run: Run) -> bool:
    """Whether packed rows of sdpa go through ``varlen_attn``, without a mask.

    A run that stops there is counted as the one that starts, with ``sdpa_varlen: false``.
    """
    return _is_sent_to_varlen(run) and not before_ampere(run)


def stops_in_varlen(run: Run) -> bool:
    """Whether packed rows of sdpa are sent to a kernel that the card does not have.

    aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_varlen_fwd@2.13.0: Ampere or newer.
    """
    return _is_sent_to_varlen(run) and before_ampere(run)


def stops_as_sdpa(run: Run) -> bool:
    """Whether the run would stop so with sdpa in place of its kernel."""
    return stops_in_varlen(replace(run, attention="sdpa", sdpa_varlen=run.config.get("sdpa_varlen") is not False))


def _is_sent_to_varlen(run: Run) -> bool:
    """Whether axolotl asks for ``varlen_attn``.

    axolotl/loaders/patch_manager.py:826-926@0.19.0: for heads up to 256 wide, all of one width, and no window; the
    card is not looked at.
    """
    packed = run.attention == "sdpa" and run.sample_packing and run.precision != "fp32"
    able = run.stack.trainer == "axolotl" and run.stack.at_least("torch", "2.10.0")
    if run.model is None or not (run.sdpa_varlen and packed and able):
        return False
    layers = [block.attention for block in run.model.blocks if block.attention is not None]
    return all(one.window is None and one.head_dim <= 256 and one.kind != "latent" for one in layers)


def keeps_scores(run: Run, family: LayerVariant, attention: Attention) -> bool:
    """Whether softmax attention is made of plain operations."""
    return is_plain(run) or without_kernel(run, family, attention)


def is_plain(run: Run) -> bool:
    """Whether that of every layer is, whatever the layer."""
    return run.attention == "eager" or lacks_kernel(run)


def without_kernel(run: Run, family: LayerVariant, attention: Attention) -> bool:
    """Whether sdpa falls back to plain operations: for all layers, or for one key head, broadcast, under a mask."""
    return run.attention == "sdpa" and (lacks_kernel(run) or _broadcast(family, attention))


def _broadcast(family: LayerVariant, attention: Attention) -> bool:
    """Whether one key head is broadcast under a mask."""
    return family.always_masked and attention.kv_heads == 1 < attention.heads


def lacks_kernel(run: Run) -> bool:
    """Whether sdpa has no kernel for bf16: cards before Ampere.

    The flash kernel needs compute capability 8.0; the memory-efficient one takes half and float alone below it:
    aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, less_than_sm80_mem_efficient_dtypes@2.13.0.
    """
    return run.attention == "sdpa" and run.precision == "bf16" and before_ampere(run)


def before_ampere(run: Run) -> bool:
    """Whether the run's GPU is known to be older than compute capability 8.0."""
    capability = run.hardware.gpu.compute_capability if run.hardware is not None else None
    return capability is not None and tuple(capability) < (8, 0)


def copied_output(run: Run, family: LayerVariant, block: Block) -> bool:
    """Whether the output projection reads a copy of the kernel's output, not the tensor that the kernel keeps.

    Under a mask the kernel's output does not follow the layout of the queries: aten/src/ATen/native/transformers/cuda/
    attention.cu, _efficient_attention_forward@2.13.0.
    """
    attention = block.attention
    if attention is None or attention.kind not in {"softmax", "latent"}:
        return True
    plain = keeps_scores(run, family, attention)
    follows = family.fresh_query and (varlen(run) or not masked(run, family, attention))
    joined = family.joined_output and run.attention != "flash"
    return plain or follows or joined or attention.gated or attention.kind == "latent"
