"""Hardware on which a run would do: more of the same cards, or larger ones."""

from collections.abc import Callable

from advisor.engine.states import Plan
from advisor.hardware import Hardware, larger_gpus
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import rebuilt


def hardware_that_would_do(run: Run, planned: Callable[[Run], Plan]) -> list[str]:
    """The smallest number of these GPUs, and the next larger card, with which a plan ends well, and its condition."""
    hardware = run.hardware
    assert hardware is not None
    found: list[str] = []
    counts = [n for n in (2, 4, 8, 16, 32, 64) if n > hardware.world_size]
    for count in counts:
        nodes = max(1, -(-count // hardware.gpu.gpus_per_node))
        more = replace(hardware, gpus_per_node=count // nodes, nodes=nodes)
        plan = planned(on_hardware(run, more))
        if plan.verdict in {"fits", "tight"}:
            found.append(more.title + plan.end.estimate.condition)
            break
    for gpu in larger_gpus(hardware.gpu):
        larger = replace(hardware, gpu=gpu, free_bytes=None)
        plan = planned(on_hardware(run, larger))
        if plan.verdict in {"fits", "tight"}:
            found.append(larger.title + plan.end.estimate.condition)
            break
    return found


def on_hardware(run: Run, hardware: Hardware) -> Run:
    """The same documents on other hardware, read again: precision and kernels may depend on it."""
    return rebuilt(replace(run, hardware=hardware), run.config, run.deepspeed)
