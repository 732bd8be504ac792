"""Run -> Estimate: the phases of one training step, each the sum of its terms. The peak is the largest phase."""

from collections.abc import Callable
from functools import lru_cache

from advisor.memory.generation import VLLM_NAME
from advisor.memory.host import host_needed, host_terms, host_usable
from advisor.memory.host_processes import with_processes
from advisor.memory.layers_apart import with_layers_apart
from advisor.memory.ledger import Estimate, HostTerm, Phase, Range, Rows
from advisor.memory.nvme import disk_note
from advisor.memory.phases import Phases
from advisor.memory.ranges import least_needed, needed, range_notes, reserved_peak
from advisor.memory.rows import as_counted, rows_of
from advisor.memory.tensor_parallel import cut
from advisor.memory.towers import image_notes, images_of, used_towers
from advisor.memory.uncounted import uncounted
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Run


@lru_cache(maxsize=8)
def estimate(run: Run) -> Estimate | None:
    """The memory of a run, or None if its model, its hardware or a value is unknown. Asked once for each run."""
    if run.model is None or run.hardware is None or run.unreadable:
        return None
    hardware, rows, counted = run.hardware, rows_of(run), phases_of(run, run.model)
    run, model, phases = counted.run, counted.model, counted.in_order
    peak = max(phases, key=lambda phase: phase.bytes)
    missing, host, range_ = uncounted(run), _cached_host_terms(run, model), _beyond_vllm(needed, run, peak)
    return Estimate(
        phases=phases,
        host=host,
        needed=range_,
        reserved_peak=_beyond_vllm(reserved_peak, run, peak),
        usable=hardware.usable,
        outside_torch=hardware.outside_torch,
        notes=(*map(str, missing), *notes_of(run, model, rows), *range_notes(run)),
        rows=rows,
        images=images_of(run) if any(tower.kind == "vision" for tower in used_towers(run, model)) else None,
        uncounted=missing,
        host_needed=host_needed(host, hardware.gpus_per_node * max(0, hardware.usable - range_.low)),
        host_usable=host_usable(hardware, host),
    )


def lower_bound(run: Run) -> int:
    """Bytes below which no peak is, however layers are checkpointed; they take less work."""
    return 0 if run.model is None else phases_of(run, run.model).least


def exceeds(run: Run, limit: float) -> bool:
    """Whether a phase by itself needs more than ``limit``: where one does, the others are not worked out."""
    if run.model is None:
        return False
    return any(least_needed(phase.bytes) > limit for phase in phases_of(run, run.model).cheapest_first())


def host_bytes(run: Run) -> int:
    """Bytes of one node's host memory, known before the estimate is."""
    return sum(term.bytes for term in _host_terms_of(run))


def lacks_host(run: Run) -> bool:
    """Whether a node has less than is on the host for certain, known before the estimate is."""
    host = _host_terms_of(run)
    usable = None if run.hardware is None else host_usable(run.hardware, host)
    return usable is not None and sum(term.least for term in host) > usable


def _host_terms_of(run: Run) -> tuple[HostTerm, ...]:
    """``_cached_host_terms`` of the run as it is counted."""
    return () if run.model is None else _cached_host_terms(*counted_run(run, run.model))


@lru_cache(maxsize=4)
def _cached_host_terms(run: Run, model: Architecture) -> tuple[HostTerm, ...]:
    """What offloading keeps on the host, and what processes take. A search asks for it before the estimate does."""
    return with_processes(host_terms(run, model, weights_of(run, model)), run.ranks_of_a_node)


@lru_cache(maxsize=4)
def counted_run(run: Run, model: Architecture) -> tuple[Run, Architecture]:
    """The run and its model as they are counted: layers told apart, weights of one rank, rows as long as can be."""
    apart = cut(run, with_layers_apart(run, model))
    return as_counted(run if apart is model else replace(run, model=apart)), apart


@lru_cache(maxsize=256)
def phases_of(run: Run, model: Architecture) -> Phases:
    """The phases of a run, none of them worked out yet."""
    counted, apart = counted_run(run, model)
    return Phases(counted, apart, weights_of(counted, apart), _whole_of(run, model))


def _whole_of(run: Run, model: Architecture) -> Architecture | None:
    """The model that is loaded before AutoTP cuts it, in the engine: deepspeed/runtime/engine.py:280-281@0.18.9."""
    return with_layers_apart(run, model) if run.autotp_size > 1 and run.tensor_parallel_size == 1 else None


def _beyond_vllm(ranged: Callable[[Run, int], Range], run: Run, peak: Phase) -> Range:
    """The range of all but vLLM's share, which is of one piece, and that share."""
    share = sum(term.bytes for term in peak.terms if term.name == VLLM_NAME)
    rest = ranged(run, peak.bytes - share)
    return Range(rest.low + share, rest.high + share)


def notes_of(run: Run, model: Architecture, rows: Rows) -> list[str]:
    """What a reader of the numbers should know."""
    notes = [*model.extra]
    if disk := disk_note(run, weights_of(run, model)):
        notes.append(disk)
    if not rows.full:
        notes.append(f"rows are counted at their worst case, {rows.origin} {rows.length}; shorter rows need less")
    if run.evaluates and run.eval_sequence_len != rows.length:
        notes.append(f"rows in evaluation are counted at `eval_sequence_len`: {run.eval_sequence_len}")
    notes += image_notes(run, model)
    if run.rollouts is not None and run.rollouts.engine == "server":
        needs = "1 GPU" if run.rollouts.server_gpus == 1 else f"{run.rollouts.server_gpus} GPUs"
        notes.append(f"the vLLM server needs {needs} of its own, which the GPUs here do not count")
    return notes
