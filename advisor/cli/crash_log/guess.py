"""The hardware that a log shows, where nobody states it, and from what it was guessed."""

import re
from collections.abc import Iterator, Sequence

from advisor.cli.crash_log.log import clipped
from advisor.cli.crash_log.parse import Death, line_of, number
from advisor.hardware import Gpu, Hardware
from advisor.hardware.catalogue import catalogue, printed_by, rarer
from advisor.record import record
from advisor.util import regex

NEAR = 0.02
"""How far a card's total may be from the one in the log."""
MOST_RANKS = 65_536
USUAL_NODE = 8
"""GPUs of a node, where there are more ranks than that."""
RANK = regex(
    r"\[(?:rank|default)(?P<first>\d+)\]:|\[(?:PG [^\]\n]{0,200} )?Rank (?P<watchdog>\d+)\]"
    r"|(?<!lora[ _])\brank[: ]{1,40}(?P<table>\d+)\b",
    re.IGNORECASE,
)


@record
class Guess:
    """Hardware, and in a sentence each what of it is guessed."""

    hardware: Hardware
    lines: tuple[str, ...]


def guess(death: Death, log: str) -> Guess | None:
    """The card whose total is the one in the log, once for each rank in it. Raises ``InputError`` for absurd ranks."""
    near = candidates(death)
    if not near or death.capacity is None:
        return None
    named = [gpu for name in sorted(_devices()) if says(log, name) for gpu in printed_by(name) if _is_near(gpu, death)]
    gpu = named[-1] if named else near[0]
    count, seen = ranks(death, log)
    per_node = min(count, max(USUAL_NODE, (death.gpu or 0) + 1))
    hardware = Hardware(gpu, per_node, -(-count // per_node), source="the log")
    return Guess(hardware, (*_card_lines(gpu, near, death.capacity, bool(named)), f"Assuming {plural(count)}, {seen}."))


def candidates(death: Death) -> list[Gpu]:
    """The cards whose total is about the one in the log, the nearest first; the rarer ones where no common one is."""
    for known in (catalogue(), rarer()):
        if near := [gpu for gpu in known.gpus.values() if _is_near(gpu, death)]:
            return sorted(near, key=lambda gpu: abs(gpu.total_bytes - (death.capacity or 0)))
    return []


def _is_near(gpu: Gpu, death: Death) -> bool:
    return bool(death.capacity) and abs(gpu.total_bytes / (death.capacity or 1) - 1) < NEAR


def _devices() -> set[str]:
    """All names that the driver prints."""
    return {*catalogue().devices, *rarer().devices}


def says(log: str, name: str) -> bool:
    """Whether a log names a device, and not one with a longer name."""
    return name in log and re.search(rf"{re.escape(name)}(?![\w-])", log) is not None


def _card_lines(gpu: Gpu, near: Sequence[Gpu], capacity: int, named: bool) -> Iterator[str]:
    """From what the card is guessed, and what else it may be."""
    if named:
        yield f"The log names the card: {gpu.title}."
        return
    others = list(dict.fromkeys(other.title for other in near if other is not gpu))
    said = f"The card was guessed from its {capacity / 2**30:.2f} GiB: taken as {gpu.title}"
    yield (
        f"{said}; it may be {', '.join(others[:-1])}{' or ' * (len(others) > 1)}{others[-1]}." if others else f"{said}."
    )


def ranks(death: Death, log: str) -> tuple[int, str]:
    """How many processes there were at least, and from what that is guessed."""
    text = clipped(log)
    most, where = -1, ""
    for match in RANK.finditer(text):
        digits = match[match.lastgroup or 0]
        if len(digits) < 3 and int(digits) <= most:
            continue
        rank = number(digits, "rank", line_of(text, match.start()), MOST_RANKS - 1)
        if rank > most:
            most, where = rank, match[0].strip(": \n")
    if death.gpu is not None and death.gpu > most:
        most, where = death.gpu, f"GPU {death.gpu}"
    return max(1, most + 1), f"from `{' '.join(where.split())}`" if where else "for the log names none"


def plural(count: int) -> str:
    """``1 GPU``, ``6 GPUs``."""
    return f"{count} GPU{'s' * (count != 1)}"
