"""A run on the cards of the catalogue, as written: on one node of each size, and on several nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import cached_property

from advisor.engine.hardware_that_fits import on_hardware, on_machines
from advisor.engine.regression import errors_but_memory
from advisor.engine.states import State
from advisor.hardware import Gpu, Hardware, find_gpu, gpu_names
from advisor.hardware.instances import instances
from advisor.memory import Estimate
from advisor.record import record, replace
from advisor.run import Run
from advisor.speed import StepTime, step_time

COUNTS = (1, 2, 4, 8)
NODES = (2, 4)
ABLE = "h200"
"""A card that runs all that axolotl has: an error on it is the config's."""


@record(eq=False)
class Row:
    """A run on some cards: as written, or at the end of a plan of ``steps``."""

    run: Run
    estimate: Estimate
    steps: tuple[str, ...] = ()
    changes_training: bool = False
    of_config: frozenset[str] = field(default_factory=frozenset[str])
    """Rules that find an error in the config wherever it runs."""

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Rules that find an error on these cards which other cards do not have."""
        return tuple(sorted(errors_but_memory(self.run).keys() - self.of_config))

    @property
    def hardware(self) -> Hardware:
        """The cards."""
        assert self.run.hardware is not None
        return self.run.hardware

    @cached_property
    def fits(self) -> bool:
        """Whether it runs here, on a host as it is common with the cards, or as stated."""
        host = self.estimate.host_usable or self.hardware.common_host_bytes
        # All rules take longer than the memory: they are asked where it is enough.
        return self.estimate.verdict == "fits" and self.estimate.host_peak <= host and not self.errors

    @cached_property
    def time(self) -> StepTime | None:
        """Of a step, where the link is known."""
        found = step_time(self.run)
        return found if isinstance(found, StepTime) else None

    @property
    def tokens_per_second(self) -> float | None:
        """Of all cards together."""
        time = self.time
        return None if time is None else time.tokens_per_second_per_gpu * self.hardware.world_size

    @property
    def tokens(self) -> int:
        """Of one GPU in a step, padding included."""
        return self.run.tokens * self.run.gradient_accumulation_steps

    @cached_property
    def seconds(self) -> float | None:
        """Of a step, good to compare rows: PCIe where the link is not known."""
        return State(self.run).seconds


def nodes_of(run: Run, gpu: Gpu) -> Iterator[Hardware]:
    """One node of each size that is sold; host and link as the run's own hardware states them."""
    larger = {machine.gpus for machine in instances().values() if machine.gpu.id == gpu.id}
    for count in (*(n for n in COUNTS if n <= gpu.gpus_per_node), *sorted(larger - {*range(gpu.gpus_per_node + 1)})):
        stated = run.hardware
        host, link = (stated.host_bytes, stated.link) if stated is not None else (None, None)
        yield Hardware(gpu, count, 1, host, link=link)


def clusters_of(run: Run, gpu: Gpu) -> Iterator[Hardware]:
    """Several full nodes of cards that are linked, with the network that the run's own hardware states."""
    net = run.hardware.network_bytes_per_s if run.hardware is not None else None
    full = [one for one in nodes_of(run, gpu) if one.gpus_per_node == gpu.gpus_per_node]
    for one in full if gpu.link_bytes_per_s is not None else ():
        yield from (replace(one, nodes=nodes, network_bytes_per_s=net) for nodes in NODES)


def rows_on(run: Run, places: Iterable[Hardware], errors: frozenset[str]) -> list[Row]:
    """The run as written on each of these; ``errors`` as in ``errors_anywhere``."""
    moved = (on_machines(run, hardware) for hardware in places)
    return [Row(one, State(one).estimate, of_config=errors) for one in moved]


def errors_anywhere(run: Run) -> frozenset[str]:
    """The rules that find an error even on a card that runs everything."""
    able = find_gpu(ABLE)
    return frozenset(errors_but_memory(on_hardware(run, Hardware(able, 1)))) if able else frozenset()


def all_gpus() -> list[Gpu]:
    """Every card of the catalogue."""
    return [gpu for gpu in map(find_gpu, gpu_names()) if gpu is not None]
