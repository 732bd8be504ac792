"""What a traced step allocated: storages with their lives, and sums over them."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Storage:
    """One piece of memory: its bytes, the operation that made it, and when it lived."""

    bytes: int
    made_by: str
    shape: tuple[int, ...]
    dtype: str
    born: int
    died: int | None = None
    casts_weight: bool = False
    gradient: bool = False
    saved: bool = False
    layer_output: int | None = None
    """The index of the decoder layer whose output it is; -1 for what enters the first."""


@dataclass
class Trace:
    """All storages of a step, in a time that counts allocations and frees, with ``marks`` of moments."""

    storages: list[Storage] = field(default_factory=list[Storage])
    marks: dict[str, int] = field(default_factory=dict[str, int])
    clock: int = 0

    def saved(self) -> list[Storage]:
        """What autograd kept for backward, weights and bf16 copies of weights left out."""
        return [s for s in self.storages if s.saved and not s.casts_weight]

    @property
    def saved_bytes(self) -> int:
        """Bytes that autograd kept for backward."""
        return sum(storage.bytes for storage in self.saved())

    def live(self, moment: int) -> int:
        """Bytes alive at ``moment``, without gradients of weights and copies of weights."""
        return sum(s.bytes for s in self.activations() if s.born <= moment and (s.died is None or s.died > moment))

    def peak(self, start: int, end: int) -> int:
        """The most bytes alive between two moments."""
        return self.peak_moment(start, end)[1]

    def peak_moment(self, start: int, end: int) -> tuple[int, int]:
        """When most was alive between two moments, and how much."""
        changes: dict[int, int] = {}
        for storage in self.activations():
            changes[storage.born] = changes.get(storage.born, 0) + storage.bytes
            if storage.died is not None:
                changes[storage.died] = changes.get(storage.died, 0) - storage.bytes
        best, when, total = 0, start, 0
        for moment in sorted(changes):
            if moment > end:
                break
            if moment > start and total > best:
                best = total
            total += changes[moment]
            if moment >= start and total > best:
                best, when = total, moment
        return when, max(best, self.live(start))

    def activations(self) -> Iterator[Storage]:
        """Every storage that is neither a weight's gradient nor a copy of a weight."""
        return (s for s in self.storages if not s.gradient and not s.casts_weight)


def layer_saved(trace: Trace, index: int) -> int:
    """Bytes that one layer keeps: its input, where that is kept as it is, and what its forward makes."""
    before, after = trace.marks[f"forward {index}"], trace.marks[f"forward end {index}"]
    return sum(s.bytes for s in trace.saved() if belongs(s, index, before, after))


def belongs(storage: Storage, index: int, before: int, after: int) -> bool:
    """Whether a saved storage is counted with layer ``index``: a layer's output belongs to the next layer."""
    if storage.layer_output is not None:
        return storage.layer_output == index - 1
    return before < storage.born <= after


def layer_working(trace: Trace, index: int) -> int:
    """The most that is live during one layer's backward, in addition to what this and earlier layers have saved."""
    marks = trace.marks
    start = marks.get(f"backward end {index + 1}", marks.get(f"backward {index}", 0))
    end = marks.get(f"backward end {index}", marks["done"])
    last = marks[f"forward end {index}"]
    kept = sum(s.bytes for s in trace.saved() if s.born <= last and s.layer_output != index)
    return trace.peak(start, end) - kept


def layer_forward_working(trace: Trace, index: int) -> int:
    """The most that one layer's forward holds at once, without its input; meant for evaluation."""
    start, end = trace.marks[f"forward {index}"], trace.marks[f"forward end {index}"]
    return trace.peak(start, end) - trace.live(start)


def inventory(trace: Trace) -> dict[tuple[str, tuple[int, ...], str], int]:
    """How many storages of which making, shape and dtype were saved."""
    counts: dict[tuple[str, tuple[int, ...], str], int] = {}
    for s in trace.saved():
        key = (s.made_by, s.shape, s.dtype)
        counts[key] = counts.get(key, 0) + 1
    return counts
