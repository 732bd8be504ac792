"""Run -> the vision tower of its model, and what the processor returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.operations import FULL, LONG
from advisor.allocations.layers.mrope import MRope
from advisor.allocations.shared import AXES
from advisor.allocations.vision.encoder_builders import ENCODER_BUILDERS
from advisor.allocations.vision.encoders import Patches
from advisor.allocations.vision.vision_tower import VisionTower
from advisor.memory.towers import at_tower, clips, images_of, keeps

if TYPE_CHECKING:
    from advisor.allocations.vision.named_weights import Parts
    from advisor.allocations.vision.towers import Towers
    from advisor.models import Architecture
    from advisor.models.tower import Tower
    from advisor.run import Run

BY_PLACE = frozenset({"by place", "in windows", "downsampled"})
"""Ways of models whose processors say where images are, and how many patches they have along their edges."""


def vision_tower_of(run: Run, model: Architecture, towers: Towers) -> VisionTower | None:
    """The vision tower of a run; none, where it is given no images."""
    if not (run.uses_images and is_known(model)):
        return None
    tower = model.towers[0]
    inner = at_tower(run, tower)
    rows, length = inner.micro_batch_size, inner.sequence_len
    _, build = ENCODER_BUILDERS[model.family.vision_tower]
    parts = build(towers, tower)
    return VisionTower(
        _patches_of(run, tower, parts),
        rows,
        tower.block.hidden,
        _pixels_of(run, tower),
        rows * (length - tower.grid.extra),
        parts.convolution,
        parts.hold,
        parts.embed,
        [parts.layer(index) for index in range(tower.block.count)],
        parts.after,
        parts.join,
        asks_for_gradients=keeps(run, model, tower),
        by_image=parts.by_image,
        sides=_sides_of(run, tower) if parts.places else (0, 0),
        positions=_positions_of(run, tower) if parts.places else None,
        strided=parts.strided,
        mask_checks={"pooled": 0, "unshuffled": 2}.get(model.family.vision_tower, 1),
        index_put=model.family.vision_tower == "projected",
        bidirectional_image_attention=model.family.vision_tower == "pooled",
    )


def _patches_of(run: Run, tower: Tower, parts: Parts) -> Patches:
    """The patches of a micro-step: a row of all, or one of each image."""
    inner, images = at_tower(run, tower), images_of(run)
    count, length = inner.micro_batch_size, inner.sequence_len
    if not parts.by_image:
        return Patches(count, length)
    if not parts.places:
        return Patches(1, count * length)
    windows = tower.grid.windows(images.width, images.height)
    return Patches(1, count * length, images=count, windows=count * windows)


def _sides_of(run: Run, tower: Tower) -> tuple[int, int]:
    """Patches along the height and the width of an image."""
    images = images_of(run)
    across, down = tower.grid.sides(images.width, images.height)
    return down, across


def _positions_of(run: Run, tower: Tower) -> MRope:
    """What counts the positions of words and images."""
    height, width = (side // tower.grid.merge for side in _sides_of(run, tower))
    return MRope(clips(images_of(run), tower), height, width)


def columns_of(model: Architecture) -> int:
    """Tensors of as many whole numbers as there are tokens: words, mask, labels, and what kind of token each is."""
    return 4 if model.family.vision_tower in {"pooled", *BY_PLACE} else 3


def inputs_of(run: Run, model: Architecture) -> tuple[int, ...]:
    """Bytes of what else the processor returns for a micro-step: pixels in fp32, and masks of patches or pixels."""
    pixels = [_pixels_of(run, tower) for tower in model.towers]
    match model.family.vision_tower:
        case "unshuffled":
            masks = [at_tower(run, tower).tokens for tower in model.towers]
        case "projected":
            masks = [count // 3 for count in pixels]
        case way if way in BY_PLACE:
            return *(FULL * count for count in pixels), AXES * LONG * at_tower(run, model.towers[0]).micro_batch_size
        case _:
            masks = []
    return tuple(FULL * count for count in (*pixels, *masks))


def _pixels_of(run: Run, tower: Tower) -> int:
    """Numbers of the pixels of a micro-step."""
    inner = at_tower(run, tower)
    return tower.entry * inner.micro_batch_size * (inner.sequence_len - tower.grid.extra)


def is_known(model: Architecture) -> bool:
    """Whether tapes have the encoder of a model."""
    named = {tensor.name for tensor in model.tensors}
    marker, _ = ENCODER_BUILDERS.get(model.family.vision_tower, ("", None))
    return any(name.endswith("." + marker) for name in named) and len(model.towers) == 1
