"""Activations of the towers for images and sound, for images of a stated or an assumed size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from advisor.memory.activations import (
    backward_peak_bytes,
    checkpoint_bytes,
    checkpoints,
    lasting_bytes,
    no_grad_peak_bytes,
    own_input_bytes,
    saved_bytes,
    saved_formula,
)
from advisor.memory.activations.dtypes import fp32_branches
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.ledger import Term
from advisor.memory.lora_targets import is_target
from advisor.memory.offloading import limit
from advisor.memory.projector import INT8, TRACED, entering_terms, joining_terms, words_term
from advisor.memory.weights import trained_count
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Images, Run

if TYPE_CHECKING:
    from advisor.models.tower import Tower, Traced

DEFAULT = Images(1, 1024, 1024, "assumed")
"""axolotl takes one image a row out of a column, processing_strategies.py:205-218@0.19.0; its size is a guess."""
TILES = "models/mllama/modeling_mllama.py, _prepare_aspect_ratio_attention_mask@5.16.1"
PIXEL_MASK = "models/smolvlm/image_processing_smolvlm.py:463@5.16.1: a number in fp32 for each pixel"
PIXELS = (
    "what the processor returns: fp32, axolotl/utils/collators/mm_chat.py:45-53@0.19.0; "
    "transformers/trainer.py, get_batch_samples@5.16.1: all batches of a step lie on the GPU"
)


def images_of(run: Run) -> Images:
    """The images of a row: stated, else in the size that axolotl resizes them to, else assumed."""
    if run.images is not None:
        return run.images
    size: object = run.config.get("image_size")
    given = cast("list[object]", size) if isinstance(size, list) else [size, size]
    sides = [side for side in given if isinstance(side, int) and not isinstance(side, bool) and side > 0]
    return Images(1, sides[0], sides[1], "image_size") if len(sides) == len(given) == 2 else DEFAULT


def used_towers(run: Run, model: Architecture) -> tuple[Tower, ...]:
    """The towers that this run computes with and whose layers are known."""
    return model.towers if run.uses_images else ()


def image_notes(run: Run, model: Architecture) -> list[str]:
    """What is taken for granted of images, and that no row with them is cut."""
    if not used_towers(run, model):
        return []
    cut = "axolotl cuts no row with images or sound to sequence_len: longer rows need more"
    if not any(tower.kind == "vision" for tower in model.towers):
        return [cut]
    return [f"counted with {images_of(run)}; `--images NxWxH` states others", cut]


def tower_terms(run: Run, model: Architecture, passed: str = "") -> tuple[Term, ...]:
    """What the towers keep from forward to backward, their inputs first.

    ``passed``: a kind of tower in whose layers backward is. What joins it to the decoder has gone by then, and the
    embeddings of the words have their gradient.
    """
    towers = used_towers(run, model)
    found = [term for tower in towers for term in kept_terms(run, model, tower, joined=tower.kind != passed)]
    words = [words_term(run, model)] if found else []
    if passed:
        words += [replace(term, name="gradient of the words' embeddings") for term in words]
    return tuple(term for term in (*found, *words) if term.bytes)


def kept_terms(run: Run, model: Architecture, tower: Tower, *, joined: bool = True) -> Iterator[Term]:
    """One tower's input, its layers, and what joins it to the decoder."""
    inner, name = at_tower(run, tower), tower.name
    batches = run.gradient_accumulation_steps if run.stack.at_least("transformers", "4.46.0") else 1
    taken = f"{4 * tower.entry:,} B x {inner.tokens:,} patches x {batches} batches of a step"
    yield Term(f"{name}'s input", "activations", 4 * tower.entry * inner.tokens * batches, taken, PIXELS)
    if tower.pixel_mask:
        count = 4 * tower.grid.patch**2
        taken = f"{count:,} B x {inner.tokens:,} patches x {batches} batches of a step"
        yield Term(f"{name}'s pixel mask", "activations", count * inner.tokens * batches, taken, PIXEL_MASK)
    if tower.masked:
        pairs, text = inner.tokens * inner.sequence_len, f"2 B x {inner.tokens:,} x {inner.sequence_len:,} patches"
        yield Term(f"{name}'s mask", "activations", 2 * pairs, text, TILES)
    if not keeps(run, model, tower):
        return
    block, where = tower.block, written(run, tower)
    if not _rebuilds(run, tower):
        text = f"{_kept_formula(inner, tower)} x {inner.tokens:,} patches x {block.count} layers{where}"
        yield Term(f"{name}'s activations", "activations", block.count * kept_bytes(inner, tower), text, TRACED)
    else:
        one = checkpoint_bytes(inner, block)
        count = block.count - (tower.bare and tower.hooked and run.adapter is not None)
        count = count if run.activation_offloading is None else min(limit(run), count)
        text = f"{one:,} B x {count} layers{where}"
        yield Term(f"{name}'s layer inputs", "activations", count * one, text, TRACED)
        lasting = lasting_bytes(inner, block)
        text = f"{lasting:,} B x {block.count} layers{where}"
        yield Term(f"{name}'s inputs of 8-bit linear layers", "activations", lasting * block.count, text, INT8)
    yield from entering_terms(inner, tower, rebuilt=_rebuilds(run, tower))
    if joined:
        tokens = rows_of(run) * clips(images_of(run), tower) * tokens_of(run, tower)
        yield from joining_terms(inner, tower, tokens)


def backward_terms(run: Run, model: Architecture, tower: Tower) -> tuple[Term, ...]:
    """One layer of a tower in its backward, which comes after the decoder's."""
    if not keeps(run, model, tower):
        return ()
    inner = at_tower(run, tower)
    again = kept_bytes(inner, tower) if _rebuilds(run, tower) else 0
    own = own_input_bytes(inner, tower.block) if again and tower.traced is None and not run.activation_offloading else 0
    text = f"{_kept_formula(inner, tower)} x {inner.tokens:,} patches"
    text += f", less {own:,} B of its own input" if own else ""
    working = tower_backward_peak_bytes(inner, tower)
    return (
        Term(f"recomputed layer of the {tower.name}", "activations", again - own, text, TRACED),
        Term(f"gradients in the {tower.name}", "activations", working, f"{inner.tokens:,} patches", TRACED),
    )


def kept_bytes(inner: Run, tower: Tower) -> int:
    """What one layer of a tower keeps."""
    if tower.traced is None:
        return saved_bytes(inner, tower.block)
    return _at_width(tower.traced, tower.traced.saved[case(inner)], inner, tower.block.hidden)


def _kept_formula(inner: Run, tower: Tower) -> str:
    """The arithmetic of that for a position."""
    if tower.traced is None:
        return saved_formula(inner, tower.block)
    return f"{kept_bytes(inner, tower) // inner.tokens:,} B, traced,"


def tower_backward_peak_bytes(inner: Run, tower: Tower) -> int:
    """What the backward of one layer holds besides what is kept."""
    if tower.traced is not None:
        return _at_width(tower.traced, tower.traced.backward[case(inner)], inner, tower.block.hidden)
    # What was traced is of weights that are not quantized; quantized ones hand on fp32, and the formulas have it.
    wide = fp32_branches(inner, family_and_norm(inner, tower.block)[1])
    held = 0 if wide else tower.held[case(inner)]
    return backward_peak_bytes(inner, tower.block) + held * inner.tokens * tower.block.hidden


def case(inner: Run) -> int:
    """Under autocast trained and frozen, and under an engine."""
    return (0 if inner.autocast else 2) + (inner.adapter is not None)


def _at_width(traced: Traced, width: int, inner: Run, hidden: int) -> int:
    """Bytes of all positions at this hidden size, from ``width`` bytes of one at the hidden size that was traced."""
    return width * inner.tokens * hidden // traced.width


def forward_terms(run: Run, tower: Tower) -> tuple[Term, ...]:
    """One layer of a tower at work in the forward, without gradients."""
    inner = at_tower(run, tower)
    if tower.traced is None:
        working = no_grad_peak_bytes(inner, tower.block)
    else:
        working = _at_width(tower.traced, tower.traced.forward[0 if inner.autocast else 1], inner, tower.block.hidden)
    text = f"{inner.tokens:,} patches"
    return (Term(f"one layer of the {tower.name}", "activations", working, text, TRACED),)


def keeps(run: Run, model: Architecture, tower: Tower) -> bool:
    """Whether gradients go through a tower: it is trained, has adapters, or its input needs a gradient as they ask.

    axolotl/loaders/adapter.py:427-428@0.19.0. A reentrant checkpoint makes no graph for a layer whose input needs none.
    """
    if trains(run, model, tower):
        return True
    if run.lora is None or tower.hooked:
        return run.lora is not None
    inside = any(is_target(run.lora, linear) for linear in tower.block.linears)
    return inside and not (run.activation_checkpointing and tower.checkpointed and run.reentrant)


def _rebuilds(run: Run, tower: Tower) -> bool:
    """Whether a tower's layers keep their inputs alone and run again in backward."""
    return checkpoints(run) and tower.checkpointed


def trains(run: Run, model: Architecture, tower: Tower) -> bool:
    """Whether weights of a tower are trained."""
    return any(trained_count(run, tensor) for tensor in model.tensors if tensor.kind == tower.kind)


def at_tower(run: Run, tower: Tower) -> Run:
    """The run as a tower's layers see it: a sequence of patches for each image, without masks and fused kernels."""
    images = images_of(run)
    count, patches = tower.grid.sequences(images.width, images.height)
    return replace(
        run,
        micro_batch_size=rows_of(run) * clips(images, tower) * count,
        sequence_len=patches,
        sample_packing=False,
        pads_to_sequence_len=False,
        rl=None,
        context_parallel_size=1,
        liger=frozenset(),
        fp32_residual_stream=run.precision == "fp32" or (widens(run, tower) and run.autocast),
        lora=replace(run.lora, kernels=frozenset()) if run.lora is not None else None,
        stack=replace(run.stack, padding="packed"),
    )


def widens(run: Run, tower: Tower) -> bool:
    """Whether a norm in front of the layers makes their stream fp32."""
    return tower.wide or (tower.wide_if_upcast and run.upcasts_unquantized)


def tokens_of(run: Run, tower: Tower) -> int:
    """Tokens of one image, or clip."""
    images = images_of(run)
    return tower.grid.tokens(images.width, images.height)


def rows_of(run: Run) -> int:
    """Rows of a micro-step that have images."""
    return run.micro_batch_size * (2 if run.paired else 1)


def clips(images: Images, tower: Tower) -> int:
    """Images of a row, or clips of half a minute: one, whatever is said of images."""
    return images.count if tower.kind == "vision" else 1


def written(run: Run, tower: Tower) -> str:
    """What the patches are of."""
    if tower.kind == "audio":
        return ", of one clip of 30 s a row"
    return f", of {images_of(run)}"
