"""Hardware on which a run would do: more of the same cards, or larger ones."""

from collections.abc import Callable, Iterable, Iterator

from advisor.engine.states import Plan
from advisor.hardware import Hardware, find_gpu, larger_gpus
from advisor.opening import that_trains
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import rebuilt

COUNTS = (2, 4, 8, 16, 32, 64)
ANY = "b200"
"""A card that can do all that any card can: what a run needs is counted there where nobody says which one it has."""


def hardware_that_would_do(run: Run, planned: Callable[[Run], Plan]) -> list[str]:
    """The fewest of these GPUs, and the next larger card, with which a plan fits, with room if it can be had."""
    return [hardware.title + plan.end.estimate.condition for plan, hardware in other_hardware(run, planned)]


def other_hardware(run: Run, planned: Callable[[Run], Plan]) -> Iterator[tuple[Plan, Hardware]]:
    """The same with the plans, each of which fits: none where that on the largest of its kind does not."""
    hardware = run.hardware
    assert hardware is not None
    counts = [n for n in COUNTS if n > hardware.world_size]
    nodes = [max(1, -(-count // hardware.gpu.gpus_per_node)) for count in counts]
    more = [replace(hardware, gpus_per_node=n // on, nodes=on) for n, on in zip(counts, nodes, strict=True)]
    larger = [replace(hardware, gpu=gpu, free_bytes=None) for gpu in larger_gpus(hardware.gpu)]
    for places in (more, larger):
        if not places or planned(on_machines(run, places[-1])).verdict != "fits":
            continue
        ends = ((planned(on_machines(run, place)), place) for place in places)
        yield from _first_with_room((plan, place) for plan, place in ends if plan.verdict == "fits")


def _first_with_room(ends: Iterable[tuple[Plan, Hardware]]) -> Iterator[tuple[Plan, Hardware]]:
    """The first of ends, from the smallest, that leaves some of the card free; else the first."""
    full: list[tuple[Plan, Hardware]] = []
    for plan, place in ends:
        if not plan.end.estimate.has_little_room:
            yield plan, place
            return
        full.append((plan, place))
    yield from full[:1]


def on_any_gpu(run: Run) -> Run:
    """The same on one GPU that is not asked how much memory it has."""
    gpu = find_gpu(ANY)
    assert gpu is not None, "the catalogue has it"
    return on_hardware(run, Hardware(gpu, 1))


def on_hardware(run: Run, hardware: Hardware) -> Run:
    """The same documents on other hardware, read again: precision and kernels may depend on it."""
    return rebuilt(replace(run, hardware=hardware), run.config, run.deepspeed)


def on_machines(run: Run, hardware: Hardware) -> Run:
    """The same on machines, of which a vLLM server may take some GPUs."""
    return on_hardware(run, that_trains(run.config, hardware))
