"""What tensor parallelism cuts: linear layers of the decoder and the head, not embeddings, norms, routers or towers."""

from advisor.models import Architecture, Tensor
from advisor.record import replace
from advisor.run import Run

ROW_WISE = ("o_proj", "down_proj", "out_proj", "c_proj", "dense", "dense_4h_to_h", "wo", "w2")
"""Layers that are cut along their inputs: transformers/models/llama/configuration_llama.py:49-57@5.16.1 and others."""
WHOLE = frozenset({"embedding", "norm", "router", "vision", "audio", "projector"})


def cut(run: Run, model: Architecture) -> Architecture:
    """The model as one rank has it: weights, gradients and states follow.

    Measured with two ranks over gloo, to the byte: tests/oracles/test_tensor_parallel.py.
    """
    if run.tensor_parallel_size == 1:
        return model
    return replace(model, tensors=tuple(local(tensor, run.tensor_parallel_size) for tensor in model.tensors))


def local(tensor: Tensor, ranks: int) -> Tensor:
    """One rank's piece of a weight."""
    if tensor.kind in WHOLE or not (tensor.linear or tensor.kind in {"head", "experts"}):
        return tensor
    along = len(tensor.shape) - 1 if tensor.module.endswith(ROW_WISE) else max(0, len(tensor.shape) - 2)
    sizes = [-(-size // ranks) if axis == along else size for axis, size in enumerate(tensor.shape)]
    if len(sizes) == 1 and tensor.module.endswith(ROW_WISE):  # the bias behind a sum over ranks
        return tensor
    return replace(tensor, shape=tuple(sizes))
