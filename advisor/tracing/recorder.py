# pyright: basic, reportMissingImports=false
"""Writes down which storages an operation makes, which of them autograd keeps, and when they die."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from advisor.tracing.allocations import Storage, Trace


class Recorder(TorchDispatchMode):
    """Writes down each storage that an operation makes, and its death."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self.known: dict[int, Storage] = {}
        self.weights: set[int] = set()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        cast = "_to_copy" in str(operation) and args[0].untyped_storage()._cdata in self.weights
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor, str(operation), cast)
        if operation is torch.ops.aten._softmax_backward_data.default:
            self.pass_by(args[0])
        return result

    def pass_by(self, gradient: torch.Tensor) -> None:
        """Writes down the product that CUDA's backward of softmax makes of gradient and output.

        aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out@2.13.0.
        """
        born = self.trace.clock + 1
        self.trace.clock += 2
        size, shape = gradient.numel() * gradient.element_size(), tuple(gradient.shape)
        self.trace.storages.append(Storage(size, "softmax's backward", shape, str(gradient.dtype), born, born + 1))

    def see(self, tensor: torch.Tensor, operation: str, casts_weight: bool) -> None:
        """Writes down the storage of a tensor, if it is new and no weight's."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.known or key in self.weights or not storage.nbytes():
            return
        self.trace.clock += 1
        # CUDA's layer norm keeps fp32 statistics whatever its input; the CPU's follow the input.
        halved = operation.startswith("aten.native_layer_norm") and tensor.shape[-1] == 1 and tensor.element_size() == 2
        size, shape = storage.nbytes() * (2 if halved else 1), tuple(tensor.shape)
        seen = Storage(size, operation, shape, str(tensor.dtype), self.trace.clock, casts_weight=casts_weight)
        self.known[key] = seen
        self.trace.storages.append(seen)
        weakref.finalize(storage, self.bury, key)

    def bury(self, key: int) -> None:
        """Writes down a storage's death."""
        self.trace.clock += 1
        self.known.pop(key).died = self.trace.clock

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        """A hook for what autograd saves."""
        if (found := self.known.get(tensor.untyped_storage()._cdata)) is not None:
            found.saved = True
        return tensor

    def mark_gradient(self, weight: torch.Tensor) -> None:
        """Writes down that a storage is the gradient of a weight."""
        if weight.grad is not None and (found := self.known.get(weight.grad.untyped_storage()._cdata)) is not None:
            found.gradient = True

    def mark_output(self, hidden: torch.Tensor, index: int) -> None:
        """Writes down that a storage is the output of a layer."""
        if (found := self.known.get(hidden.untyped_storage()._cdata)) is not None:
            found.layer_output = index

    def mark(self, name: str) -> None:
        """Names this moment."""
        self.trace.clock += 1
        self.trace.marks.setdefault(name, self.trace.clock)


def materialise(model: torch.nn.Module, weights: set[int], mark_gradient: Callable[[torch.Tensor], None]) -> None:
    """Turns meta weights and buffers into fake ones on ``cpu``; ties and dtypes stay.

    Their storages are added to ``weights``; ``mark_gradient`` is told of each weight that has got its gradient.
    """
    made: dict[int, torch.nn.Parameter] = {}
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is None:
                continue
            if id(weight) not in made:
                fake = torch.empty(weight.shape, dtype=weight.dtype)
                made[id(weight)] = torch.nn.Parameter(fake, requires_grad=weight.requires_grad)
                weights.add(fake.untyped_storage()._cdata)
            module._parameters[name] = made[id(weight)]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                fake = torch.empty(buffer.shape, dtype=buffer.dtype)
                weights.add(fake.untyped_storage()._cdata)
                module._buffers[name] = fake
    for weight in made.values():
        if weight.requires_grad:
            weight.register_post_accumulate_grad_hook(mark_gradient)
