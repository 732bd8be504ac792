"""A death and the run that died -> what was foreseen against what happened, and the run on what was really free."""

from collections.abc import Iterator
from dataclasses import replace

from advisor.cli.crash_log.frames import PHASES
from advisor.cli.crash_log.parse import Death
from advisor.engine.plan import on_hardware
from advisor.hardware import Hardware
from advisor.hardware.catalogue import catalogue
from advisor.memory import Estimate, Phase, estimate
from advisor.run import Run
from advisor.util import gib

NEAR = 0.03
"""How far a card's total may be from the one in the log."""


def what_happened(death: Death) -> str:
    """How it died, in a sentence."""
    moment = f" in {MOMENTS.get(death.moment, death.moment)}" if death.moment else ""
    if death.cause == "host":
        return f"the host killed the run{moment}, most likely for want of host memory"
    if death.cause == "elsewhere":
        return "another rank died first: this log shows only what followed; look for `out of memory` in the other logs"
    gpu = f"GPU {death.gpu}" if death.gpu is not None else "a GPU"
    if death.tried is None:
        return f"{gpu} was full{moment}; the message has no figures"
    figures = [f"{gib(death.tried)} more were asked for"]
    figures += [f"{gib(death.allocated)} allocated"] if death.allocated is not None else []
    figures += [f"{gib(death.unallocated)} reserved in pieces"] if death.unallocated else []
    figures += [f"{gib(death.free)} free"] if death.free is not None else []
    figures += [f"{gib(death.capacity)} in all"] if death.capacity is not None else []
    return f"{gpu} was full{moment}: {', '.join(figures)}"


MOMENTS = {
    "load": "the load",
    "prepare": "the preparation of the trainer",
    "forward and loss": "the forward and loss",
    "backward": "the backward pass",
    "optimizer step": "the optimizer step",
    "evaluation": "evaluation",
    "save": "saving a checkpoint",
}


def card_of(death: Death, ranks: int) -> Hardware | None:
    """The card whose total is the one in the log, for want of a better statement."""
    total = death.capacity
    if total is None:
        return None
    near = [gpu for gpu in catalogue().gpus.values() if abs(gpu.total_bytes / total - 1) < NEAR]
    found = min(near, key=lambda gpu: (not gpu.data_centre, abs(gpu.total_bytes - total)), default=None)
    return Hardware(found, ranks, source="the log") if found is not None else None


def on_what_was_free(run: Run, death: Death) -> Run:
    """The run on as much as torch really had, less what it needed above the estimate."""
    found = estimate(run)
    if run.hardware is None or found is None or death.available is None or death.in_pieces:
        return run
    phase = phase_of(found, death)
    beyond = max(0, (death.needed or 0) - phase.bytes)
    free = max(0, death.available - beyond) + run.hardware.outside_torch
    return on_hardware(run, replace(run.hardware, free_bytes=min(free, run.hardware.gpu.total_bytes)))


def phase_of(found: Estimate, death: Death) -> Phase:
    """The phase of the estimate that it died in, else its peak."""
    name = PHASES.get(death.moment) if death.moment else None
    return next((phase for phase in found.phases if phase.name == name), found.peak)


def comparison(run: Run, death: Death) -> Iterator[str]:
    """What the estimate had said, and what speaks for other causes."""
    found = estimate(run)
    if death.cause == "host":
        yield from host_lines(run, found)
    if found is None or death.cause != "gpu":
        return
    phase = phase_of(found, death)
    if death.needed is not None:
        at_least = f"this moment needed {gib(death.needed)} or more"
        yield f"{at_least}; the estimate for the {phase.name} is {gib(phase.bytes)}, {shift(death.needed, phase.bytes)}"
    if phase is not found.peak and phase.bytes < found.peak.bytes:
        yield f"the estimated peak is another: the {found.peak_phase}, {gib(found.allocated_peak)}"
    if death.available is not None and death.available < found.usable * (1 - NEAR):
        less = gib(found.usable - death.available)
        yield f"torch had {gib(death.available)}, {less} less than the card gives: something else held the rest"
    if death.in_pieces:
        yield (
            "the memory was there, in pieces: `PYTORCH_ALLOC_CONF=expandable_segments:True` lets torch join them "
            "(axolotl sets it from torch 2.2 on)"
        )
    if death.moment == "save":
        yield "saving gathers what is sharded: `save_only_model`, or sharded state dicts, need less"


def shift(needed: int, estimated: int) -> str:
    """How the estimate stands to the least that was needed."""
    if estimated >= needed:
        return "which foresaw it"
    return f"{gib(needed - estimated)} too low: please report it, with the config"


def host_lines(run: Run, found: Estimate | None) -> Iterator[str]:
    """What the host was to hold."""
    if found is None:
        return
    stated = run.hardware.host_bytes if run.hardware else None
    of = f" of {gib(stated)}" if stated else ""
    yield f"offloading alone keeps {gib(found.host_peak)}{of} on each node, {gib(found.host_pinned)} of it pinned"
    yield "loading, data workers and the page cache come on top; `dmesg` or the batch system names the process killed"
