# pyright: basic, reportMissingImports=false
"""What torch holds: its own counters on a GPU; on a CPU, which has none, the bytes of the tensors that are alive."""

import weakref
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class Meter(Protocol):
    """The highest peak since the last restart. Bytes."""

    def read(self) -> tuple[int, int]:
        """Allocated and reserved."""
        ...

    def restart(self) -> None:
        """The peak begins again at what is held now."""

    def know(self, model: Any) -> None:
        """Weights that were made where the meter does not look."""


class CudaMeter:
    """torch's counters of this process's GPU, once it has CUDA in use."""

    @property
    def used(self) -> bool:
        """Whether this process has a context."""
        return torch.cuda.is_initialized()

    def read(self) -> tuple[int, int]:
        """Allocated and reserved."""
        return (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()) if self.used else (0, 0)

    def restart(self) -> None:
        """axolotl's own log does so, too: axolotl/utils/bench.py:59-63@0.19.0."""
        if self.used:
            torch.cuda.reset_peak_memory_stats()

    def know(self, model: Any) -> None:
        """torch counts all of them."""


class TensorMeter(TorchDispatchMode):
    """Bytes of the storages that operations of this thread made, and of a model's weights."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()
        self.held = self.peak = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor)
        return result

    def see(self, tensor: torch.Tensor) -> None:
        """Counts the storage of a tensor, if it is new."""
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:  # of a subclass, which holds others
            return
        key, size = storage._cdata, storage.nbytes()
        if key in self.known or not size or tensor.device.type == "meta":
            return
        self.known.add(key)
        self.held += size
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self.forget, key, size)

    def forget(self, key: int, size: int) -> None:
        """A storage is gone."""
        self.known.discard(key)
        self.held -= size

    def read(self) -> tuple[int, int]:
        """Allocated; nothing is reserved beyond it."""
        return self.peak, 0

    def restart(self) -> None:
        """The peak begins again at what is held now."""
        self.peak = self.held

    def know(self, model: Any) -> None:
        """transformers loads weights in threads of its own."""
        for tensor in (*model.parameters(), *model.buffers()):
            self.see(tensor)


def meter_of(*, cpu: bool) -> Meter:
    """The meter of this process. On a CPU it looks on from here to the end."""
    if not cpu:
        return CudaMeter()
    meter = TensorMeter()
    meter.__enter__()
    return meter
