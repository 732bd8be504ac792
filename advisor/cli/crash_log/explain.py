"""A death and the run that died -> what was foreseen against what happened, and the run on what was really free."""

from collections.abc import Iterator

from advisor.cli.crash_log.frames import PHASES
from advisor.cli.crash_log.parse import Death
from advisor.engine.hardware_that_fits import on_hardware
from advisor.memory import Estimate, Phase, estimate
from advisor.record import replace
from advisor.run import Run
from advisor.util import gib

NEAR = 0.03
"""How far a card's total may be from the one that is stated."""


def what_happened(death: Death) -> str:
    """How it died, in a sentence."""
    moment = f" in {MOMENTS.get(death.moment, death.moment)}" if death.moment else ""
    match death.cause:
        case "host":
            return f"the host killed the run{moment}, most likely out of host memory"
        case "elsewhere":
            return (
                "most likely another rank died first: this log shows only what followed; look for `out of memory` in "
                "the other logs"
            )
        case "vllm":
            return "vLLM found no room for its cache in its share of the card (`gpu_memory_utilization`)"
        case "apple":
            return f"Apple's MPS reached its limit{moment}: {figures(death)}"
        case "gpu":
            return _gpu_died(death, moment)


def _gpu_died(death: Death, moment: str) -> str:
    """A GPU that ran out: full, in pieces, or asked for more than it has."""
    gpu = f"GPU {death.gpu}" if death.gpu is not None else "a GPU"
    if death.tried is None:
        return f"{gpu} was full{moment}, according to {death.teller}; the message has no figures"
    if death.too_large and death.capacity is not None:
        card = f"the whole card has {gib(death.capacity)}"
        return f"one request of {gib(death.tried)}{moment}, and {card}: a shape problem, not a full card"
    state = "had no piece large enough" if death.in_pieces else "was full"
    return f"{gpu} {state}{moment}: {figures(death)}"


def figures(death: Death) -> str:
    """The numbers of the message."""
    named = (
        ("more were requested", death.tried),
        ("allocated", death.allocated),
        ("reserved in pieces", death.unallocated),
        ("free", death.free),
        ("in total", death.capacity),
    )
    return ", ".join(f"{size_text(size)} {name}" for name, size in named if size)


def size_text(size: int) -> str:
    """GiB, or MiB for less than a tenth of one."""
    return gib(size) if size >= 0.1 * (1 << 30) else f"{size / (1 << 20):.0f} MiB"


def by_message(death: Death) -> Iterator[str]:
    """What the message alone tells: full or fragmented, and what was outside torch."""
    if death.cause == "gpu" and death.followed:
        yield f"the communication errors (line {death.followed}) followed on other ranks; they are not the cause"
    if death.tried is None or death.cause != "gpu" or death.too_large:
        return
    pieces = death.unallocated or 0
    if death.free is not None and pieces and not death.in_pieces:
        rest = f"{size_text(pieces)} in pieces and {size_text(death.free)} free"
        less = "less than was requested" if death.tried > pieces + death.free else "a small part of the card"
        yield f"full, not fragmented: {rest} are {less}"
    if death.capacity is not None and death.available is not None:
        outside = max(0, death.capacity - death.available)
        yield (
            f"{gib(death.capacity)} in total, less {gib(outside)} outside torch (CUDA context, NCCL, other processes) "
            f"leave {gib(death.available)} for torch"
        )


MOMENTS = {
    "load": "the load",
    "prepare": "the preparation of the trainer",
    "forward and loss": "the forward and loss",
    "backward": "the backward pass",
    "optimizer step": "the optimizer step",
    "evaluation": "evaluation",
    "save": "saving a checkpoint",
}


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
    hardware = replace(run.hardware, gpu=gpu, free_bytes=min(free, total))
    if not beyond:
        return on_hardware(run, hardware), ""
    said = (
        f"planned for {gib(hardware.usable)}: torch had {gib(death.available)}, and the estimate of the {phase.name} "
        f"was {gib(beyond)} too low"
    )
    return on_hardware(run, hardware), said


def fragmented(death: Death, found: Estimate) -> bool:
    """Whether pieces were the cause: the message says so, and the estimate is not above what torch had."""
    return death.in_pieces and _phase_of(found, death).bytes <= (death.available or found.usable)


def _phase_of(found: Estimate, death: Death) -> Phase:
    """The phase of the estimate that it died in, else its peak."""
    name = PHASES.get(death.moment) if death.moment else None
    return next((phase for phase in found.phases if phase.name == name), found.peak)


def comparison(run: Run, death: Death) -> Iterator[str]:
    """What the estimate had said, and what speaks for other causes."""
    found = estimate(run)
    if death.cause == "host":
        yield from host_lines(run, found)
    if found is None or death.cause != "gpu" or death.too_large:
        return
    phase = _phase_of(found, death)
    if death.needed is not None:
        at_least = f"this moment needed {gib(death.needed)} or more"
        yield f"{at_least}; the estimate for the {phase.name} is {gib(phase.bytes)}, {shift(death.needed, phase.bytes)}"
    if phase is not found.peak and phase.bytes < found.peak.bytes:
        yield f"the estimated peak is elsewhere: the {found.peak_phase}, {gib(found.allocated_peak)}"
    if death.capacity is not None and run.hardware is not None and not _is_card(death.capacity, run):
        yield f"the log's card has {gib(death.capacity)} in total, so it is not a {run.hardware.gpu.title}"
    elif death.available is not None and death.available < found.usable * (1 - NEAR):
        less = gib(found.usable - death.available)
        yield f"torch had {gib(death.available)}, {less} less than the card gives: something else held the rest"
    if fragmented(death, found):
        yield (
            "the memory was there, in pieces: `PYTORCH_ALLOC_CONF=expandable_segments:True` lets torch join them "
            "(axolotl sets it from torch 2.2 on)"
        )
    elif death.in_pieces:
        there = gib(death.available or 0)
        yield f"joining the pieces would not help: the {phase.name} needs more than the {there} there"
    if death.moment == "save":
        yield "saving gathers what is sharded: `save_only_model`, or sharded state dicts, need less"


def _is_card(total: int | None, run: Run) -> bool:
    """Whether the stated card is about as large as the one in the log."""
    return (
        run.hardware is not None and total is not None and abs(run.hardware.gpu.total_bytes / max(1, total) - 1) < NEAR
    )


def shift(needed: int, estimated: int) -> str:
    """How the estimate stands to the least that was needed."""
    if estimated >= needed:
        return "which predicted it"
    return f"{gib(needed - estimated)} too low: please report it, with the config"


def host_lines(run: Run, found: Estimate | None) -> Iterator[str]:
    """What the host was to hold."""
    if found is None:
        return
    stated = run.hardware.host_bytes if run.hardware else None
    of = f" of {gib(stated)}" if stated else ""
    yield f"offloading alone keeps {gib(found.host_peak)}{of} on each node, {gib(found.host_pinned)} of it pinned"
    yield "loading, data workers and the page cache come on top; `dmesg` or the batch system names the process killed"
