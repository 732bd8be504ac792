"""Which of the three ways to take."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.new.start import Start
from advisor.new.usual import much_to_learn

if TYPE_CHECKING:
    from advisor.new.ways import Way


def recommended(start: Start, ways: "Sequence[Way]") -> tuple[int | None, str]:
    """The number of the way to take, None where there is none; and why, as a sentence.

    The flowchart's order: LoRA, quantization, offload. All weights come first where there is much to learn.
    """
    asked = start.request.wanted
    if asked is not None:
        found = next((at for at, way in enumerate(ways) if way.training == asked and way.fits), None)
        return found, "As asked." if found is not None else "What was asked for does not fit; nothing is written."
    return next(_in_order(start, ways), (None, "Nothing fits; nothing is written."))


def _in_order(start: Start, ways: "Sequence[Way]") -> "Iterator[tuple[int, str]]":
    """The ways that fit, the one to take first, each with the reason."""
    much = start.seen.plain_text or (start.tokens or 0) > much_to_learn()
    full, lora, qlora = ((at, way) for at, way in enumerate(ways))
    learns = "plain text is new knowledge" if start.seen.plain_text else "there is much to learn from so many tokens"
    if much and full[1].fits and not full[1].offloads:
        yield full[0], f"All weights: {learns}, and they fit on the card."
    for offloads in (False, True):
        tail = " with part of it in host memory" if offloads else ""
        if lora[1].fits and lora[1].offloads is offloads:
            yield lora[0], f"LoRA learns a style or a format as well as all weights, for less{tail}."
        if qlora[1].fits and qlora[1].offloads is offloads:
            fits = "The base fits only in 4 bits" if not lora[1].fits else "In 4 bits nothing waits in host memory"
            yield qlora[0], f"{fits if not offloads else 'It fits only in 4 bits'}{tail}."
    if full[1].fits:
        yield full[0], "Nothing else fits."
