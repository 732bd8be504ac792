"""Which cards and how many would do: a run on each of them, as written and with the plan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from advisor.engine.larger import on_hardware
from advisor.engine.regression import errors_but_memory
from advisor.engine.states import Plan, State
from advisor.hardware import Gpu, Hardware, find_gpu, gpu_names
from advisor.memory import Estimate
from advisor.record import record
from advisor.run import Run
from advisor.speed import StepTime, shown, step_time

COUNTS = (1, 2, 4, 8)
ABLE = "h200"
"""A card that runs all that axolotl has: an error on it is the config's."""
MOST_PLANNED = 40
"""So many plans are made, which takes about 4 s of CPU."""


@record(eq=False)
class Row:
    """A run on some cards: as written, or at the end of a plan of ``steps``."""

    run: Run
    estimate: Estimate
    steps: tuple[str, ...] = ()
    changes_training: bool = False
    everywhere: frozenset[str] | None = None
    """Rules that find an error whatever the card; None where no rule is asked, as at the end of a plan."""

    @property
    def hardware(self) -> Hardware:
        """The cards."""
        assert self.run.hardware is not None
        return self.run.hardware

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Rules that find an error on this card which another card does not have."""
        return () if self.everywhere is None else tuple(sorted(errors_but_memory(self.run) - self.everywhere))

    @cached_property
    def fits(self) -> bool:
        """Whether it runs here, on a host as it is common with the cards, or as stated."""
        host = self.hardware.host_bytes or self.hardware.common_host_bytes
        # All rules take longer than the memory: they are asked where it is enough.
        return self.estimate.verdict == "fits" and self.estimate.host_peak <= host and not self.errors

    @cached_property
    def time(self) -> StepTime | None:
        """Of a step, where the link is known."""
        found = shown(step_time(self.run))
        return found if isinstance(found, StepTime) else None

    @property
    def tokens_per_second(self) -> float | None:
        """Of all cards together."""
        time = self.time
        return None if time is None else time.tokens_per_second_per_gpu * self.hardware.world_size

    @property
    def gpu_seconds_per_token(self) -> float | None:
        """What a token costs in the time of cards."""
        time = self.time
        return None if time is None else 1 / time.tokens_per_second_per_gpu


def written_rows(run: Run, gpus: Iterable[Gpu], counts: Sequence[int] = COUNTS, *, fewest: bool = False) -> list[Row]:
    """The run on every card and count, as written; with ``fewest`` a card's rows end with the first that fits."""
    able = find_gpu(ABLE)
    everywhere = errors_but_memory(on_hardware(run, Hardware(able, 1))) if able else frozenset[str]()
    rows: list[Row] = []
    done: set[str] = set()
    for hardware in hardware_of(run, gpus, counts):
        if hardware.gpu.id in done:
            continue
        moved = on_hardware(run, hardware)
        rows.append(Row(moved, State(moved).estimate, everywhere=everywhere))
        if fewest and rows[-1].fits:
            done.add(hardware.gpu.id)
    return rows


def hardware_of(run: Run, gpus: Iterable[Gpu], counts: Sequence[int]) -> Iterator[Hardware]:
    """One node of each count that such machines have; host and link as the run's own hardware states them."""
    stated = run.hardware
    for gpu in gpus:
        for count in counts:
            if count <= gpu.gpus_per_node:
                link = stated.link if stated is not None else None
                yield Hardware(gpu, count, 1, stated.host_bytes if stated else None, link=link)


def planned_rows(rows: Sequence[Row], planner: Callable[[Run], Plan], most: int | None) -> list[Row]:
    """Rows that fit at the end of their plan: all, or of each card the fewest, until ``most`` plans are made.

    A card that fits as written in some number needs no plan; those with most memory are planned first.
    """
    lacking = [row for row in rows if not row.fits]
    if most is None:
        return [end for row in lacking if not row.errors and (end := planned_row(row, planner)) is not None]
    done = {row.hardware.gpu.id for row in rows if row.fits}
    lacking.sort(key=lambda row: (-row.hardware.gpu.total_bytes, row.hardware.gpu.id, row.hardware.world_size))
    found: list[Row] = []
    for row in lacking:
        if row.hardware.gpu.id in done or most == 0 or row.errors:
            continue
        most -= 1
        end = planned_row(row, planner)
        if end is not None:
            found.append(end)
            if not end.changes_training:
                done.add(row.hardware.gpu.id)
    return found


def planned_row(row: Row, planner: Callable[[Run], Plan]) -> Row | None:
    """A row at the end of its plan, where that fits."""
    plan = planner(row.run)
    return Row(plan.end.run, plan.end.estimate, plan.names, not plan.safe) if plan.verdict == "fits" else None


def all_gpus() -> list[Gpu]:
    """Every card of the catalogue."""
    return [gpu for gpu in map(find_gpu, gpu_names()) if gpu is not None]
