"""In which precision a layer computes, and what its LoRA adapters do with their inputs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.models.layer_variant import SQUARED_RELU, XIELU, NormVariant
from advisor.record import record, replace

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Run


@record(eq=False)
class Numbers:
    """Bytes per element: of products, the residual stream, what norms give, and what the MLP's first linears do."""

    compute: int
    stream: int
    normed: int
    inner: int
    autocast: bool
    trained: bool
    """Whether the base weights get gradients."""
    returned: int
    """Of what the layer returns: as wide as the stream, but where it widens that."""


@record(eq=False)
class Adapters:
    """How PEFT's LoRA layers keep their input: peft/tuners/lora/layer.py, Linear.forward@0.20.0."""

    weight: int
    """Bytes per element of the adapter's weights."""
    cast: int
    """Bytes per element of the input that dropout reads, and so of that input's gradient."""
    width: int
    """Bytes per element of the copy of the input that each adapter keeps."""
    own: bool
    """Whether each adapter keeps a copy of its own, instead of sharing the layer's tensor."""
    dropout: bool
    """A kept mask, one byte per element on CUDA: aten/src/ATen/native/cuda/Dropout.cu."""


@lru_cache(maxsize=16)
def numbers_of(run: Run, block: Block) -> Numbers:
    """The precision of the parts of a layer."""
    found = numbers(run, family_and_norm(run, block)[1], narrow=block.narrow)
    return replace(found, returned=4) if block.narrow and block.mlp is not None else found


def numbers(run: Run, norm: NormVariant, *, narrow: bool = False) -> Numbers:
    """The precision of the parts of a layer with norms of this kind; ``narrow``: see ``Block``."""
    compute = run.compute_bytes
    weights = _enters_wide(run)
    branches = fp32_branches(run, norm)
    stream = 4 if weights or ((branches or fp32_stream(run)) and not narrow) else 2
    casts = narrow or (run.model is not None and run.model.variant.casts_stream)
    wide = weights or (branches and not casts)
    # CUDA's autocast runs layer_norm in fp32 and hands fp32 on; RMS norms are written to return their
    # input's dtype, which some decoders first turn to that of the norm's weights.
    normed = 4 if norm == "layer" and run.autocast else compute if norm == "half layer" else 4 if wide else 2
    # Quantized linears hand on the precision of what a norm in fp32 gives them.
    inner = normed if branches or (wide and run.autocast and run.quantization in KEEP_WIDTH) else compute
    return Numbers(compute, stream, normed, inner, run.autocast, trained=run.adapter is None, returned=stream)


def widened(run: Run) -> bool:
    """Whether autocast makes the stream fp32 before the first layer."""
    return run.autocast and run.model is not None and run.model.variant.widens_stream


def _enters_wide(run: Run) -> bool:
    """Whether the stream is in fp32 from the embedding on."""
    return run.precision == "fp32" or run.fp32_residual_stream or fp32_weights(run) or widened(run)


def enters_narrow(run: Run, norm: NormVariant) -> bool:
    """Whether the first layer gets half precision and returns fp32: see ``KEEP_WIDTH``, which embeddings do not."""
    return not _enters_wide(run) and (fp32_branches(run, norm) or fp32_stream(run))


def fp32_stream(run: Run) -> bool:
    """Whether layers return fp32, which the next one's norm turns back: Mamba2Block.forward@5.16.1."""
    states = [block.states for block in run.model.blocks] if run.model is not None else []
    return any(one is not None and one.fp32_stream for one in states)


def fp32_weights(run: Run) -> bool:
    """Whether the model is computed from fp32 weights: loaded so, and cast by no engine or FSDP policy."""
    return run.stack.base_dtype == "float32" and run.sharding is None


KEEP_WIDTH = frozenset({"nf4", "int8"})
"""Quantizations whose linears give an output of the input's dtype.

bitsandbytes/nn/modules.py, Linear4bit.forward; autograd/_functions.py, MatMul8bitLt.forward@0.50.2.
"""


def fp32_branches(run: Run, norm: NormVariant) -> bool:
    """Whether quantized layers hand on the fp32 of autocast's layer_norm, pow or expm1, and so widen the stream."""
    used = run.model.variant.activation if run.model is not None else None
    widens = used == SQUARED_RELU or (used == XIELU and not run.stack.xielu)
    return (norm == "layer" or widens) and run.autocast and run.quantization in KEEP_WIDTH


def casts_inputs(run: Run) -> bool:
    """Whether PEFT casts the input to the adapter's type; on bitsandbytes' linears it leaves that to autocast.

    peft/tuners/lora/layer.py, Linear.forward; bnb.py:260-263,543-546@0.20.0.
    """
    return not run.autocast or run.quantization not in {"nf4", "int8"}


def adapters(run: Run, source: int) -> Adapters:
    """How adapters keep inputs that have ``source`` bytes per element.

    DeepSpeed casts the adapters with the model, and FSDP's policy casts them for each forward: bf16 adapters.
    """
    assert run.lora is not None
    weight = 4 if run.sharding is None and run.lora.fp32 else run.compute_bytes
    kept = run.compute_bytes if run.autocast else weight
    cast = weight if casts_inputs(run) else source
    dropout = run.lora.dropout > 0
    return Adapters(weight, cast, kept, own=dropout or cast != source or kept != source, dropout=dropout)
