"""A death and the run that died -> what was foreseen against what happened, and the run on what was really free."""

from collections.abc import Iterator, Mapping

from advisor.cli.crash_log.frames import PHASES
from advisor.cli.crash_log.parse import Death
from advisor.engine.hardware_that_fits import on_hardware
from advisor.hardware.gpu import MIB
from advisor.memory import Estimate, Phase, estimate
from advisor.record import record, replace
from advisor.run import Run
from advisor.util import GIB, gib, path_shown

LEAST_GIB = GIB // 10
NEAR = 0.03
"""How far a card's total may be from the one that is stated."""


@record
class Said:
    """How it died, in plain words: what ran out, then the rest of the sentence."""

    what: str
    rest: str


def what_happened(death: Death) -> Said:
    """How it died."""
    match death.cause:
        case "host":
            return Said("Out of host memory, most likely:", "the host killed the run.")
        case "elsewhere":
            return Said(
                "Another rank died first, most likely:",
                "this log shows only what followed. Look for `out of memory` in the other logs.",
            )
        case "vllm":
            share = "vLLM found no room for its cache in its share of the card (`gpu_memory_utilization`)."
            return Said("Out of memory:", share)
        case "apple":
            return Said("Out of memory:", _apple_died(death))
        case "gpu":
            return Said("Out of memory:", _gpu_died(death))


def _apple_died(death: Death) -> str:
    """Apple's MPS at its limit."""
    allocated, limit = size_text(death.allocated or 0), size_text(death.capacity or 0)
    return f"Apple's MPS asked for {size_text(death.tried or 0)} and had {allocated} of its limit of {limit} allocated."


def _gpu_died(death: Death) -> str:
    """A GPU that ran out: full, in pieces, or asked for more than it has."""
    gpu = f"GPU {death.gpu}" if death.gpu is not None else "a GPU"
    if death.tried is None:
        return f"{gpu} was full, says {death.teller}, without figures."
    asked = f"{gpu} asked for {size_text(death.tried)}"
    if death.too_large and death.capacity is not None:
        return (
            f"{asked} at once, and the whole card has {gib(death.capacity)}. That is a shape problem, not a full card."
        )
    if death.free is None:
        return f"{asked}."
    return " ".join((f"{asked} and had {bare(death.free, death.tried)} free.", *_state(death)))


def _state(death: Death) -> Iterator[str]:
    """Whether the memory was full or in pieces, as far as the message tells."""
    pieces = death.unallocated
    if death.in_pieces and pieces:
        yield f"It is fragmented: {size_text(pieces)} lie in pieces, none of them large enough."
    elif death.tried is not None and death.free is not None and death.free < death.tried:
        fragments = f" ({size_text(pieces)} in pieces)" if pieces else ""
        yield f"It is full, not fragmented{fragments}." if pieces is not None else "It is full."


def size_text(size: int) -> str:
    """GiB, or MiB for less than a tenth of one."""
    return gib(size) if size >= LEAST_GIB else f"{size / (1 << 20):.0f} MiB"


def bare(size: int, after: int) -> str:
    """A size without the unit that the one before it has named."""
    return gib(size).removesuffix(" GiB") if min(size, after) >= LEAST_GIB else size_text(size)


def where(log: str, death: Death) -> str:
    """The line of the log, and the moment, if the traceback tells one."""
    place = f"{path_shown(log)}:{death.line}"
    return f"It died in {MOMENTS[death.moment]} ({place})." if death.moment else f"The log says so at {place}."


def by_message(death: Death) -> Iterator[str]:
    """What the message alone tells: what followed, and what was outside torch."""
    if death.cause == "gpu" and death.followed:
        yield f"The communication errors (line {death.followed}) followed on other ranks; they are not the cause."
    if death.tried is None or death.cause != "gpu" or death.too_large:
        return
    if death.capacity is not None and death.available is not None:
        outside = death.capacity - death.available
        if outside < LEAST_GIB:
            return
        yield (
            f"Of {gib(death.capacity)} in total {gib(outside)} were outside torch (CUDA context, NCCL, other "
            f"processes), so torch had {gib(death.available)}."
        )


MOMENTS: Mapping[str, str] = {
    "load": "the load",
    "prepare": "the preparation of the trainer",
    "forward and loss": "the forward pass and loss",
    "backward": "the backward pass",
    "optimizer step": "the optimizer step",
    "evaluation": "evaluation",
    "generation": "generation",
    "save": "saving a checkpoint",
}
"""Of a death, and the phases of an estimate."""


def on_what_was_free(run: Run, death: Death) -> tuple[Run, str]:
    """The run on as much as torch really had, less what it needed above the estimate; and this in words."""
    found = estimate(run)
    if run.hardware is None or found is None or death.available is None or fragmented(death, found):
        return run, ""
    phase = _phase_of(found, death)
    beyond = max(0, (death.needed or 0) - phase.bytes)
    free = max(0, death.available - beyond) + run.hardware.outside_torch
    # What the log says of the card goes before the catalogue's total, which is the lowest that was read.
    total = max(free, run.hardware.gpu.total_bytes) if _is_card(death.capacity, run) else run.hardware.gpu.total_bytes
    gpu = replace(run.hardware.gpu, total_bytes=total)
    # Whole MiB, so that `free=` says the same.
    hardware = replace(run.hardware, gpu=gpu, free_bytes=min(free, total) & -MIB)
    if not beyond:
        return on_hardware(run, hardware), ""
    said = (
        f"Planned for {gib(hardware.usable)}: torch had {gib(death.available)}, and the estimate of "
        f"{MOMENTS[phase.name]} was {gib(beyond)} too low."
    )
    return on_hardware(run, hardware), said


def fragmented(death: Death, found: Estimate) -> bool:
    """Whether pieces were the cause: the message says so, and the estimate is not above what torch had."""
    return death.in_pieces and _phase_of(found, death).bytes <= (death.available or found.usable)


def _phase_of(found: Estimate, death: Death) -> Phase:
    """The phase of the estimate that it died in, else its peak."""
    name = PHASES.get(death.moment) if death.moment else None
    return next((phase for phase in found.phases if phase.name == name), found.peak)


def of_pieces(run: Run, death: Death) -> str:
    """Whether joining the pieces would do; nothing where there are none."""
    found = estimate(run)
    if found is None or not death.in_pieces:
        return ""
    if fragmented(death, found):
        return (
            "The memory was there, in pieces: `PYTORCH_ALLOC_CONF=expandable_segments:True` lets torch join them "
            "(axolotl sets it from torch 2.2 on)."
        )
    needs = MOMENTS[_phase_of(found, death).name]
    return f"Joining the pieces would not help: {needs} needs more than the {gib(death.available or 0)} there."


def comparison(run: Run, death: Death) -> Iterator[str]:
    """What the estimate had said, and what speaks for other causes."""
    found = estimate(run)
    if death.cause == "host":
        yield from host_lines(run, found)
    if found is None or death.cause != "gpu" or death.too_large:
        return
    phase = _phase_of(found, death)
    if death.needed is not None:
        yield f"It needed {gib(death.needed)} or more at this moment; {foreseen(death.needed, phase, found)}."
    if phase is not found.peak and phase.bytes < found.peak.bytes:
        yield f"The estimated peak is elsewhere: {MOMENTS[found.peak_phase]}, {gib(found.allocated_peak)}."
    if death.capacity is not None and run.hardware is not None and not _is_card(death.capacity, run):
        stated = run.hardware.gpu.title
        yield f"The log's card has {gib(death.capacity)} in total, so it is another card than the {stated}."
    elif death.available is not None and death.available < found.usable * (1 - NEAR):
        less = gib(found.usable - death.available)
        yield f"Torch had {gib(death.available)}, {less} less than the card gives: something else held the rest."
    if death.moment == "save":
        yield "Saving gathers what is sharded: `save_only_model`, or sharded state dicts, need less."


def _is_card(total: int | None, run: Run) -> bool:
    """Whether the stated card is about as large as the one in the log."""
    return (
        run.hardware is not None and total is not None and abs(run.hardware.gpu.total_bytes / max(1, total) - 1) < NEAR
    )


def foreseen(needed: int, phase: Phase, found: Estimate) -> str:
    """How the estimate stands to the least that was needed."""
    named = f"{gib(phase.bytes)} for {MOMENTS[phase.name]}"
    if phase.bytes < needed:
        return f"the estimate, {named}, is {gib(needed - phase.bytes)} too low: please report it, with the config"
    if phase.bytes > found.usable:
        return f"`advisor check` would have said so: it estimates {named}"
    return f"the estimate is {named}"


def host_lines(run: Run, found: Estimate | None) -> Iterator[str]:
    """What the host was to hold."""
    if found is None:
        return
    stated = run.hardware.host_bytes if run.hardware else None
    of = f" of {gib(stated)}" if stated else ""
    yield f"Offloading alone keeps {gib(found.host_peak)}{of} on each node, {gib(found.host_pinned)} of it pinned."
    yield "Loading, data workers and the page cache come on top; `dmesg` or the batch system names the process killed."
