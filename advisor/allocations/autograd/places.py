"""Features of images in their places among the words, and which images there are."""

from __future__ import annotations

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, into_zeros


def placed(tape: Tape, inputs: Tensor, features: Tensor, places: Tensor) -> Tensor:
    """``masked_scatter`` on CUDA: places are counted in 64 bits, and in backward found by their three indices.

    aten/src/ATen/native/cuda/IndexKernel.cpp, masked_scatter__cuda, masked_select_cuda; Nonzero.cu@2.13.0;
    FunctionsManual.cpp, masked_scatter_backward.
    """

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        outside = tape.new(count, width) if node.needs[0] else None
        if not node.needs[1]:
            return outside, None
        whole = tape.new(count, 1)
        indices = tape.new(3 * size, LONG)
        del whole
        inside = tape.new(size, width)
        del indices
        return outside, inside

    count, width, size = inputs.count, inputs.width, features.count
    node = node_for(tape, back, inputs, features)
    result = tape.new(count, width)
    sums, whole = tape.new(count, LONG), tape.new(count, 1)
    del sums, whole
    if node is not None:
        node.keep(tape, places)
    result.node = node
    return result


def chosen(tape: Tape, tokens: int, inputs: Tensor, features: Tensor) -> Tensor:
    """Features by their indices, put into zeros, and those or the words: SmolVLMModel.inputs_merger@5.16.1."""
    mask = tape.new(tokens, 1)
    counted = tape.new(tokens, LONG)
    numbers: list[Tensor] = []
    for _ in range(2):  # of an image, and in it
        less = tape.new(tokens, LONG)
        numbers.append(tape.new(tokens, LONG))
        del less
    numbers.append(tape.new(tokens, LONG))
    zeros = tape.new(inputs.count, inputs.width)
    found = features.count * tokens // inputs.count
    taken = index_select(tape, features, [first_of(tape, found) for _ in range(2)])
    taken = put(tape, zeros, taken, mask)
    del zeros
    result = either(tape, taken, inputs, mask)
    del counted, numbers, taken
    return result


def first_of(tape: Tape, count: int) -> Tensor:
    """Numbers by a mask, whose places are found first."""
    places = tape.new(2 * count, LONG)
    result = tape.new(count, LONG)
    del places
    return result


def index_select(tape: Tape, x: Tensor, indices: list[Tensor]) -> Tensor:
    """Rows by their indices: the gradient is put into zeros."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (into_zeros(tape, count, width),)

    count, width = x.count, x.width
    node = node_for(tape, back, x)
    if node is not None:
        node.keep(tape, *indices)
    result = tape.new(count, width)
    result.node = node
    return result


def put(tape: Tape, zeros: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Values put into a tensor by a mask, whose places are found each way."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        places = tape.new(places_count, LONG)
        result = tape.new(count, width)
        del places
        return (result,)

    count, width = values.count, values.width
    places_count = 2 * (count * mask.count // zeros.count)
    node = node_for(tape, back, values)
    places = tape.new(places_count, LONG)
    del places
    if node is not None:
        node.keep(tape, mask)
    result = zeros.detached()
    result.node = node
    return result


def either(tape: Tape, left: Tensor, right: Tensor, mask: Tensor) -> Tensor:
    """``torch.where``: the gradient of what stands on the right is made first."""

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor | None, ...]:
        found = [tape.new(count, width) if needed else None for needed in reversed(node.needs)]
        return found[1], found[0]

    count, width = left.count, left.width
    node = node_for(tape, back, left, right)
    if node is not None:
        node.keep(tape, mask)
    result = tape.new(count, width)
    result.node = node
    return result


def real_images(tape: Tape, pixels: int, images: int, patches: int, width: int) -> tuple[Tensor, ...]:
    """Images that are not all zeros, and which of their patches count: SmolVLMModel.get_image_features@5.16.1."""
    given = None if width == FULL else tape.new(pixels, width)
    zeros = tape.new(pixels, 1)
    sums = tape.new(images, LONG)
    del zeros
    real = tape.new(images, 1)
    del sums
    places = tape.new(images, LONG)
    kept = tape.new(pixels, width)
    del places, given
    places = tape.new(images, LONG)
    mask = tape.new(pixels // 3, FULL)
    del places
    sums = tape.new(patches, FULL)
    counted = tape.new(patches, 1)
    del sums
    return real, kept, mask, counted
