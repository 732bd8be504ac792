"""What tensor parallelism cuts: linear layers of the decoder, not embeddings, norms, routers or towers.

transformers' (``tensor_parallel_size``) cuts the head and experts as well, DeepSpeed's (``autotp_size``) does not.
"""

from collections.abc import Iterable

from advisor.models import Architecture, Attention, WeightShape
from advisor.record import replace
from advisor.run import Run

ROW_WISE = ("o_proj", "down_proj", "out_proj", "c_proj", "dense", "dense_4h_to_h", "wo", "w2")
"""Layers that are cut along their inputs: transformers/models/llama/configuration_llama.py:49-57@5.16.1 and others."""
PLAIN = frozenset({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
"""Llama's linear layers, all of which AutoTP cuts, by the model's plan or by its own search."""
WHOLE = frozenset({"embedding", "norm", "router", "vision", "audio", "projector"})
APART = frozenset({"embedding", "head", "vision", "audio", "projector"})
"""What stands outside of the decoder's layers."""


def cut(run: Run, model: Architecture) -> Architecture:
    """The model as one rank has it: weights, gradients and states follow.

    Measured over gloo, to the byte: tests/oracles/test_tensor_parallel.py, tests/oracles/test_autotp.py.
    """
    ranks = run.tensor_ranks
    if ranks == 1:
        return model
    tensors = tuple(piece(tensor, ranks, run.autotp_size > 1) for tensor in model.tensors)
    share = _of_layers(tensors) / max(1, _of_layers(model.tensors))
    blocks = tuple(replace(block, parameters=round(block.parameters * share)) for block in model.blocks)
    return replace(model, tensors=tensors, blocks=blocks)


def _of_layers(tensors: Iterable[WeightShape]) -> int:
    """Elements of the decoder's layers, and of the last norm, which is next to nothing."""
    return sum(tensor.elements for tensor in tensors if tensor.kind not in APART)


def piece(tensor: WeightShape, ranks: int, by_deepspeed: bool) -> WeightShape:
    """One rank's piece of a weight: DeepSpeed replaces modules of the decoder's plan, in which no head stands.

    deepspeed/runtime/engine.py:570-647, module_inject/auto_tp.py:351-405@0.18.9.
    """
    return tensor if by_deepspeed and tensor.kind in {"head", "experts"} else local(tensor, ranks)


def local(tensor: WeightShape, ranks: int) -> WeightShape:
    """One rank's piece of a weight."""
    if tensor.kind in WHOLE or not (tensor.linear or tensor.kind in {"head", "experts"} or _is_projection(tensor)):
        return tensor
    along = len(tensor.shape) - 1 if tensor.module.endswith(ROW_WISE) else max(0, len(tensor.shape) - 2)
    sizes = [-(-size // ranks) if axis == along else size for axis, size in enumerate(tensor.shape)]
    if len(sizes) == 1 and tensor.module.endswith(ROW_WISE):  # the bias behind a sum over ranks
        return tensor
    return replace(tensor, shape=tuple(sizes))


def _is_projection(tensor: WeightShape) -> bool:
    """Whether it is the weight, or the bias, of one of Llama's linear layers."""
    return tensor.kind not in WHOLE and tensor.module.rpartition(".")[2] in PLAIN


def is_plain(model: Architecture) -> bool:
    """Whether AutoTP cuts this model as ``piece`` does: Llama's seven projections, norms that need no whole heads.

    Fused projections and norms over all heads stop in the first forward pass, experts go by another plan.
    """
    return all(
        tensor.kind in {"embedding", "norm", "head"} or _is_projection(tensor) for tensor in model.tensors
    ) and not any(_is_across_heads(tensor, block.attention) for tensor in model.tensors for block in model.blocks)


def _is_across_heads(tensor: WeightShape, attention: Attention | None) -> bool:
    """Whether a norm works on the queries or keys of all heads at once, as OLMo 2's do."""
    wider = attention is not None and tensor.numel > attention.head_dim
    return wider and tensor.module.endswith(("q_norm", "k_norm"))
