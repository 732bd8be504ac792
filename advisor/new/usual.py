"""How much a run trains on at once, how often, and what is held back: ``usual.json``."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from advisor.learning import Training

USUAL = Path(__file__).with_name("usual.json")


@cache
def usual() -> Any:
    """The table."""
    return json.loads(USUAL.read_text(encoding="utf-8"))


def below(steps: Sequence[tuple[float | None, float]], amount: float | None) -> float:
    """The value of the first step that an amount is below; of an unknown amount the last step's."""
    return next(value for end, value in steps if end is None or (amount is not None and amount < end))


def epochs_for(rows: int | None, *, paired: bool) -> int:
    """How often rows are trained on."""
    return int(below(usual()["epochs"]["dpo" if paired else "sft"], rows))


def held_back(rows: int | None) -> float:
    """The share of the rows that is evaluated."""
    found = usual()["held_back"]
    return found["unknown"] if rows is None else below(found["shares"], rows)


def tokens_a_step(training: Training) -> int:
    """Of all GPUs."""
    return usual()["tokens_a_step"][training]


def pairs_a_step() -> int:
    """Of all GPUs."""
    return usual()["pairs_a_step"]["value"]


def fewest_steps() -> int:
    """Optimizer steps that a run should have."""
    return usual()["fewest_steps"]["value"]


def much_to_learn() -> float:
    """Tokens from which a full fine-tune is worth its memory."""
    return usual()["much_to_learn"]["value"]


def length_for(longest: int | None, tokens: float | None, most: int | None, *, packs: bool) -> int:
    """The shortest power of two that holds the longest row; packed, no shorter than is quick, if data abounds."""
    table = usual()["sequence_len"]
    if longest is None:
        found = table["unknown"]
    else:
        abounds = packs and (tokens or 0) > fewest_steps() * tokens_a_step("lora")
        least = table["packed"] if abounds else table["least"]
        found = max(least, 1 << max(0, longest - 1).bit_length())
    return min(found, most) if most else found
