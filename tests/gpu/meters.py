"""Peaks of memory by phase: from CUDA's allocator, or from the storages of tensors on the CPU."""

import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

HISTORY = 400_000
"""Entries of the allocator's history: three steps of 32 checkpointed layers make about 60,000."""


@dataclass
class Meter:
    """Figures of each phase, the largest of all times that it ran while ``counting``."""

    phases: dict[str, dict[str, int | None]] = field(default_factory=dict)
    current: str = "start"
    counting: bool = True
    first_step_peak: int = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures what runs inside."""
        self.current = name
        self.reset()
        yield
        self.record(name)

    def split(self, name: str) -> None:
        """Ends what has run of the phase so far as a phase ``name`` of its own."""
        self.record(name)
        self.reset()

    def record(self, name: str) -> None:
        """Keeps the larger of what is known of the phase and what was seen now."""
        seen = self.read()
        if not self.counting:
            self.first_step_peak = max(self.first_step_peak, seen["allocated_peak"] or 0)
            return
        known = self.phases.setdefault(name, dict(seen))
        for key, value in seen.items():
            known[key] = value if value is None else max(value, known[key] or 0)

    def reset(self) -> None:
        """Begins a new peak."""
        raise NotImplementedError

    def read(self) -> dict[str, int | None]:
        """The peaks since ``reset``, and what is allocated now."""
        raise NotImplementedError

    def clock(self) -> float:
        """Seconds, once the device has done all that it was asked to."""
        return time.perf_counter()

    def facts(self) -> dict[str, Any]:
        """The device and what lies outside torch."""
        raise NotImplementedError

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around the whole run."""
        yield


@dataclass
class CudaMeter(Meter):
    """CUDA's own statistics; ``limit`` bytes are all that torch may have, ``snapshot`` is written at the end.

    The allocator counts when the host asks for memory, so peaks need no synchronisation.
    """

    limit: int | None = None
    snapshot: Path | None = None

    def reset(self) -> None:
        torch.cuda.reset_peak_memory_stats()

    def read(self) -> dict[str, int | None]:
        return {
            "allocated_peak": torch.cuda.max_memory_allocated(),
            "reserved_peak": torch.cuda.max_memory_reserved(),
            "allocated_end": torch.cuda.memory_allocated(),
        }

    def clock(self) -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    def facts(self) -> dict[str, Any]:
        card = torch.cuda.get_device_properties(0)
        free, total = torch.cuda.mem_get_info()
        capability = [card.major, card.minor]
        return {
            "gpu": {"name": card.name, "total_memory": card.total_memory, "compute_capability": capability},
            "outside_torch": total - free - torch.cuda.memory_reserved(),
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        torch.cuda.init()
        if self.limit is not None:
            share = self.limit / torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, share))
        if self.snapshot is not None:
            torch.cuda.memory._record_memory_history(max_entries=HISTORY)
        try:
            yield
        finally:
            if self.snapshot is not None:
                self.snapshot.parent.mkdir(parents=True, exist_ok=True)
                torch.cuda.memory._dump_snapshot(str(self.snapshot))


class Storages(TorchDispatchMode):
    """Bytes of all storages that operations made and that are alive, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()
        self.live = self.peak = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                self.see(tensor.untyped_storage())
        return result

    def see(self, storage: torch.UntypedStorage) -> None:
        """Counts a storage until it is freed."""
        key, size = storage._cdata, storage.nbytes()
        if not size or key in self.known:
            return
        self.known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self.bury, key, size)

    def bury(self, key: int, size: int) -> None:
        """A storage was freed."""
        self.known.discard(key)
        self.live -= size


@dataclass
class CpuMeter(Meter):
    """Storages of tensors, without the allocator's rounding; there is nothing else reserved."""

    storages: Storages = field(default_factory=Storages)

    def reset(self) -> None:
        self.storages.peak = self.storages.live

    def read(self) -> dict[str, int | None]:
        return {
            "allocated_peak": self.storages.peak,
            "reserved_peak": None,
            "allocated_end": self.storages.live,
        }

    def facts(self) -> dict[str, Any]:
        return {"gpu": None, "outside_torch": None}

    @contextmanager
    def running(self) -> Iterator[None]:
        with self.storages:
            yield
