"""Encoders of images and sound: the shape of their layers, and into how many patches they cut an image."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod, sqrt
from typing import Literal

from advisor.models.blocks import Attention, Block, LinearShape, Mlp
from advisor.models.config import Config
from advisor.models.layer_variant import LLAMA, LayerVariant
from advisor.models.parts import Tensors
from advisor.record import record, replace

Held = tuple[int, int, int, int]
NORMS = "norm.weight", "ln_q.weight"
"""How the names of norms around an encoder's layers end."""
FIRST_NORMS = frozenset({"ln_pre.weight", "pre_layrnorm.weight", "layernorm_pre.weight"})
"""Names of norms in front of an encoder's layers."""
Rule = Literal["fixed", "near", "longest", "tiles", "split", "canvas", "padded"]


@record
class Grid:
    """How an image becomes patches of ``patch`` pixels, of which ``merge`` squared are one token.

    ``fixed``: resized to ``side``; ``near``: to the nearest multiples of a token, at most ``most`` pixels;
    ``longest``: shrunk until its longer edge is ``side``; ``tiles``: cut into up to ``most`` tiles of ``side``, and
    one of all; ``split``: its longer edge is made ``most`` tiles of ``side``, and one of all is added; ``canvas``:
    always ``most`` tiles of ``side`` in one sequence, each padded to eight patches; ``padded``: an image or a clip has
    ``most``, whatever its size. ``extra`` patches a sequence, or a tile of a canvas, are learned. ``window``: tokens
    along the edge of what sees itself alone in some layers, but for those of the numbers in ``whole``.
    """

    rule: Rule
    patch: int
    merge: int = 1
    side: int = 0
    most: int = 0
    extra: int = 0
    window: int = 0
    whole: tuple[int, ...] = ()

    def sequences(self, width: int, height: int) -> tuple[int, int]:
        """How many sequences of patches an image becomes, and how long each is."""
        match self.rule:
            case "fixed":
                return 1, self.of_side() + self.extra
            case "tiles":
                tiles = tiled(width, height, self.side, self.most)
                return tiles + (1 if tiles > 1 else 0), self.of_side() + self.extra
            case "split":
                scale = self.most * self.side / max(width, height)
                tiles = ceil(width * scale / self.side) * ceil(height * scale / self.side)
                return tiles + 1, self.of_side() + self.extra
            case "longest":
                shrunk = max(1.0, max(width, height) / self.side)
                return 1, self.up(width / shrunk) * self.up(height / shrunk)
            case "near":
                across, down = self.sides(width, height)
                return 1, across * down
            case "canvas":
                return 1, self.most * 8 * ceil((self.of_side() + self.extra) / 8)
            case "padded":
                return 1, self.most

    def tokens(self, width: int, height: int) -> int:
        """Tokens that an image has in the row, or that the decoder's layers look at."""
        if self.rule == "canvas":
            return self.most * (self.of_side() + self.extra)
        count, patches = self.sequences(width, height)
        return count * (patches - self.extra) // self.merge**2

    def sides(self, width: int, height: int) -> tuple[int, int]:
        """Patches along the edges of an image that keeps its shape."""
        shrunk = max(1.0, sqrt(width * height / self.most))
        return self.near(width / shrunk), self.near(height / shrunk)

    def windows(self, width: int, height: int) -> int:
        """Windows of such an image, as far as patches are left for them."""
        return prod(ceil(side / self.merge / self.window) for side in self.sides(width, height)) if self.window else 0

    def of_side(self) -> int:
        """Patches of a square of ``side`` pixels."""
        return (self.side // self.patch) ** 2

    def up(self, pixels: float) -> int:
        """Patches along an edge, rounded up."""
        return max(1, ceil(pixels / self.patch))

    def near(self, pixels: float) -> int:
        """Patches along an edge, whole tokens of them."""
        return self.merge * max(1, round(pixels / (self.patch * self.merge)))


def tiled(width: int, height: int, side: int, most: int) -> int:
    """Tiles in the grid whose shape is nearest to the image's; of equals the larger one that it fills by half.

    models/got_ocr2/image_processing_got_ocr2.py, get_optimal_tiled_canvas@5.16.1.
    """
    best, nearest = 1, float("inf")
    grids = [(x, y) for x in range(1, most + 1) for y in range(1, most + 1) if x * y <= most]
    for columns, rows in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        away = abs(width / height - columns / rows)
        if away < nearest or (away == nearest and width * height > 0.5 * side**2 * columns * rows):
            best, nearest = columns * rows, away
    return best


@record(eq=False)
class Traced:
    """Bytes a position that a layer of ``width`` was traced to keep, and its backward and forward to hold.

    Under autocast trained and frozen, and under an engine; forward without gradients, under autocast and an engine.
    """

    width: int
    saved: Held
    backward: Held
    forward: tuple[int, int]


@record(eq=False)
class Tower:
    """One encoder. ``entry``: elements of a patch as the processor hands it over; ``joins``: what leads to the decoder.

    ``wide``: a norm in front of the layers makes the stream fp32 under autocast. ``first``: how many are in front.
    ``norms``: how many come after the layers and read every patch; ``pools``: whether patches are averaged. The others:
    see ``Layers``.
    """

    kind: Literal["vision", "audio"]
    block: Block
    grid: Grid
    entry: int
    joins: tuple[LinearShape, ...] = ()
    wide: bool = False
    held: Held = (0, 0, 0, 0)
    hooked: bool = True
    wide_if_upcast: bool = False
    first: int = 0
    norms: int = 0
    pools: bool = False
    checkpointed: bool = True
    masked: bool = False
    bare: bool = False
    placed: bool = False
    pixel_mask: bool = False
    name: str = ""
    """What its terms are called in the ledger."""
    traced: Traced | None = None
    """Where the formulas of a decoder's layers do not hold."""


@record(eq=False)
class Layers:
    """What a builder's tensors do not tell of its layers.

    ``held``: bytes per element of the stream that a layer's backward holds beyond a decoder's, as traced: under
    autocast trained and frozen, and under an engine. ``hooked``: whether transformers finds its embedding, so that
    adapters make its input need a gradient (modeling_utils.py:2216-2247@5.16.1). ``wide_if_upcast``: whether a norm in
    front of the layers has a name that axolotl does not know, and stays in fp32 after PEFT's upcast. ``checkpointed``:
    whether activation checkpointing reaches them. ``masked``: whether they attend under a mask over all pairs of
    patches. ``bare``: whether the first of them reads what the embedding returns as it is; ``placed``: which has added
    positions, in the precision of their table. ``norms``: how many are
    over the stream; ``normed``: queries, keys and values are, too. ``then``: what reads their output. ``pixel_mask``:
    whether the processor hands over a number in fp32 for each pixel, which says whether it is padding.
    """

    stack: str
    norm: Literal["rms", "layer"]
    grid: Callable[[Config], Grid]
    held: Held
    variant: LayerVariant = LLAMA
    width: str = "hidden_size"
    heads: str = "num_attention_heads"
    wide: bool = False
    hooked: bool = True
    wide_if_upcast: bool = False
    frames: int = 1
    """Frames that one patch spans."""
    checkpointed: bool = True
    masked: bool = False
    bare: bool = False
    placed: bool = False
    pixel_mask: bool = False
    norms: int = 2
    normed: bool = False
    then: Layers | None = None
    frame: int = 0
    """Numbers of a position that the processor hands over, where the config does not name them."""
    traced: Traced | None = None


def tower(
    kind: Literal["vision", "audio"], prefix: str, c: Config, shape: Layers, tensors: Tensors, joins: Tensors
) -> Tower:
    """The encoder of these tensors, which are named within it; ``joins`` are the projector's."""
    grid, width = shape.grid(c), c.size(shape.width)
    entry = (c.maybe("num_channels") or c.maybe("in_channels") or 3) * grid.patch**2 * shape.frames
    if kind == "audio":
        entry = shape.frame or 2 * c.size("num_mel_bins")
    stacks = tuple(f"{one.stack}.*." for one in (shape, shape.then) if one is not None)
    outside = [t for t in (*tensors, *joins) if t.linear and not t.name.startswith(stacks) and "embed" not in t.name]
    if outside:
        grid = replace(grid, merge=max(grid.merge, round(sqrt(outside[0].shape[1] / width))))
    joined = tuple(_encoder_linear(t.module, t.shape) for t in outside)
    after = [t for t in (*tensors, *joins) if not t.name.startswith(stacks) and t.name.endswith(NORMS)]
    return Tower(
        kind,
        layers_of(prefix, c, shape, tensors),
        grid,
        entry,
        joined,
        wide=shape.wide,
        held=shape.held,
        hooked=shape.hooked,
        wide_if_upcast=shape.wide_if_upcast,
        first=sum(t.name in FIRST_NORMS for t in tensors),
        norms=sum("pre" not in t.module for t in after),
        checkpointed=shape.checkpointed,
        masked=shape.masked,
        bare=shape.bare,
        placed=shape.placed,
        pixel_mask=shape.pixel_mask,
        name=f"{kind} tower",
        traced=shape.traced,
    )


def following(first: Tower, prefix: str, c: Config, shape: Layers, tensors: Tensors) -> Tower:
    """The layers that read what the first ones return."""
    block = layers_of(prefix, c, shape, tensors)
    name = f"last layers of the {first.name}"
    alone = replace(first, entry=0, joins=(), wide=False, first=0, norms=0, pools=False)
    alone = replace(alone, masked=False, bare=False, placed=False, pixel_mask=False)
    return replace(alone, block=block, held=shape.held, name=name)


def layers_of(prefix: str, c: Config, shape: Layers, tensors: Tensors) -> Block:
    """One of an encoder's layers, or all of one that has no stack of them."""
    if not shape.stack:
        whole = sum(tensor.elements for tensor in tensors)
        return Block(1, c.size(shape.width), None, None, (), whole, norms=0, norm="none")
    start, width, heads = f"{shape.stack}.*.", c.size(shape.width), c.maybe(shape.heads) or c.heads
    inside = [tensor for tensor in tensors if tensor.name.startswith(start) and tensor.linear]
    linears = tuple(_encoder_linear(f"{prefix}.{t.module}", t.shape) for t in inside)
    mlp = [one for one in linears if one.kind == "mlp"]
    softmax = Attention("softmax", heads, heads, width // heads, width, width, width)
    return Block(
        count=inside[0].count,
        hidden=width,
        attention=replace(softmax, query_key_norm=shape.normed, value_norm=shape.normed),
        mlp=Mlp(mlp[0].n_out, gated=any(one.name == "gate_proj" for one in mlp)),
        linears=linears,
        parameters=sum(tensor.numel for tensor in tensors if tensor.name.startswith(start)),
        norms=shape.norms,
        norm=shape.norm,
        variant=shape.variant,
    )


def _encoder_linear(path: str, shape: tuple[int, ...]) -> LinearShape:
    """A linear layer by its path; one that another module clips has that module's name."""
    attends = any("attn" in part or part == "attention" for part in path.split("."))
    name = path.removesuffix(".linear").rpartition(".")[2]
    return LinearShape(name, shape[1], shape[0], "attention" if attends else "mlp", path)
