"""Weights that are stored and trained alike, counted once; what every other term is computed from."""

from collections.abc import Iterable
from functools import cached_property

from advisor.record import record
from advisor.run import Run

Shape = tuple[int, ...]


@record(eq=False)
class Group:
    """Weights that are stored and trained alike. ``width`` is bytes per element, scales of quantization included."""

    name: str
    elements: int
    width: float
    trainable: bool
    source: str
    largest: int = 0
    """Elements of the largest tensor."""
    embedding: bool = False
    matrix_elements: int = 0
    """Elements in tensors of two or more dimensions."""
    factored_elements: int = 0
    """Rows plus columns of its matrices: the size of factored second moments."""
    small_elements: int = 0
    """Elements in tensors below 4096, whose bitsandbytes states stay in 32 bits."""
    uneven_elements: int = 0
    """Elements in tensors below 4096, or of no whole number of blocks of 256: torchao keeps their states as wide."""
    largest_even: int = 0
    """Elements of the largest tensor of two or more dimensions that is none of these."""
    quantized: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of the whole group on an unsharded rank."""
        return round(self.elements * self.width)


@record(eq=False)
class Weights:
    """All weights of a run, on an unsharded rank."""

    groups: tuple[Group, ...]
    trained_shapes: tuple[tuple[Shape, int], ...] = ()
    """Shapes of the trained tensors in the order of the model's parameters, and how often each comes in a row."""

    @cached_property
    def trained(self) -> tuple[Group, ...]:
        """The groups that get gradients."""
        return tuple(group for group in self.groups if group.trainable)

    @cached_property
    def frozen(self) -> tuple[Group, ...]:
        """The groups that do not."""
        return tuple(group for group in self.groups if not group.trainable)

    @cached_property
    def trained_elements(self) -> int:
        """Elements that get gradients."""
        return sum(group.elements for group in self.trained)

    @cached_property
    def elements(self) -> int:
        """All elements, adapters included."""
        return sum(group.elements for group in self.groups)

    @cached_property
    def bytes(self) -> int:
        """All bytes, as stored."""
        return sum(group.bytes for group in self.groups)

    @cached_property
    def trained_bytes(self) -> int:
        """Bytes of the weights that get gradients."""
        return sum(group.bytes for group in self.trained)

    @cached_property
    def frozen_bytes(self) -> int:
        """Bytes of the weights that do not."""
        return sum(group.bytes for group in self.frozen)

    @cached_property
    def largest_trained(self) -> int:
        """Elements of the largest tensor that gets a gradient; 0 if none."""
        return max((group.largest for group in self.trained), default=0)


def group_of(name: str, width: float, trainable: bool, source: str, shapes: Iterable[tuple[Shape, int]]) -> Group:
    """A group of tensors given as (shape, how many)."""
    elements = largest = matrices = factored = small = uneven = widest = 0
    for shape, count in shapes:
        numel = 1
        for size in shape:
            numel *= size
        elements += numel * count
        largest = max(largest, numel)
        small += numel * count if numel < 4096 else 0
        even = numel >= 4096 and numel % 256 == 0
        uneven += 0 if even else numel * count
        widest = max(widest, numel if even and len(shape) > 1 else 0)
        matrices += numel * count if len(shape) > 1 else 0
        factored += (numel // shape[-1] + numel // shape[-2] if len(shape) > 1 else numel) * count
    return Group(
        name,
        elements,
        width,
        trainable,
        source,
        largest,
        name.startswith("embedding"),
        matrices,
        factored,
        small,
        uneven,
        widest,
        width not in (2, 4),
    )


def base_width(run: Run) -> int:
    """Bytes per element in which weights are loaded: axolotl/utils/config/__init__.py:191-196@0.19.0."""
    named = {"float32": 4, "bfloat16": 2, "float16": 2}.get(run.stack.base_dtype or "")
    return named or run.compute_bytes
