"""The allocator's settings: what ``PYTORCH_ALLOC_CONF`` says, and what axolotl sets where it says nothing."""

from advisor.memory.run_kind import expandable_segments
from advisor.record import record
from advisor.run import Run

MIB = 1 << 20


@record
class Settings:
    """What of ``PYTORCH_ALLOC_CONF`` decides where a block lies.

    ``garbage_collection_threshold`` has no effect unless the process limits its own share of the card
    (c10/cuda/CUDACachingAllocator.cpp, malloc, set_fraction@2.13.0), which neither axolotl nor the trainers do.
    """

    expandable_segments: bool = False
    max_split_size: int | None = None
    """Bytes from which blocks are never split; None is no such size."""
    roundup_power2_divisions: int = 0
    """Sizes are rounded up to this many steps between powers of two; 0 and 1 are none."""


def parse_settings(text: str) -> Settings:
    """``expandable_segments:True,max_split_size_mb:128`` as settings; other keys decide no address and are left out.

    Raises ``ValueError`` for a value that torch would refuse, too.
    """
    pairs = [part.partition(":") for part in text.replace(" ", "").split(",")]
    said = {key: value for key, _, value in pairs}
    split, divisions = said.get("max_split_size_mb"), said.get("roundup_power2_divisions", "0")
    return Settings(
        expandable_segments=said.get("expandable_segments", "False") == "True",
        max_split_size=None if split is None else int(split) * MIB,
        roundup_power2_divisions=int(divisions),
    )


def settings_of(run: Run) -> Settings:
    """What axolotl's command line sets: axolotl/utils/__init__.py:81-97@0.19.0."""
    expandable = expandable_segments(run)
    rounds = expandable and run.stack.trainer == "axolotl" and not run.stack.at_least("torch", "2.9.0")
    return Settings(expandable_segments=expandable, roundup_power2_divisions=16 if rounds else 0)
