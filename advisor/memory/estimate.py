"""Run -> Estimate: the phases of one training step, each the sum of its terms. The peak is the largest phase."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from advisor.memory.activations import traced_source
from advisor.memory.backward import backward_phases
from advisor.memory.deepspeed import bucket_terms, retained_terms, secondary_terms
from advisor.memory.ebft import ebft_phases, network_terms
from advisor.memory.forward import CHECKPOINTS, SAVED, WORKING, evaluation_phases, loss_phases
from advisor.memory.generation import VLLM_NAME, resident_vllm, rollout_phase
from advisor.memory.gradients import between_micro_steps, bucket_copies, step_gradients
from advisor.memory.host import host_needed, host_terms, host_usable
from advisor.memory.layers_apart import with_layers_apart
from advisor.memory.ledger import Estimate, HostTerm, Phase, PhaseName, Range, Rows, Term
from advisor.memory.model import (
    autocast_terms,
    dequantized_terms,
    load_terms,
    reference_terms,
    weight_divisor,
    weight_terms,
    workspace_terms,
)
from advisor.memory.nvme import disk_note
from advisor.memory.optimizer_states import optimizer_terms, step_terms
from advisor.memory.ranges import needed, range_notes, reserved_peak
from advisor.memory.rows import as_counted, rows_of
from advisor.memory.tensor_parallel import cut
from advisor.memory.towers import image_notes, images_of, used_towers
from advisor.memory.uncounted import uncounted
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Run


@lru_cache(maxsize=8)
def estimate(run: Run) -> Estimate | None:
    """The memory of a run, or None if its model, its hardware or a value is unknown. Asked once for each run."""
    if run.model is None or run.hardware is None or run.unreadable:
        return None
    hardware, rows, whole = run.hardware, rows_of(run), _whole_of(run, run.model)
    run, model = counted_run(run, run.model)
    weights = weights_of(run, model)
    phases = tuple(phases_of(run, model, weights, whole))
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
    """Bytes of the optimizer step, which holds no activations: no peak is lower, and they take less work."""
    if run.model is None:
        return 0
    run, model = counted_run(run, run.model)
    weights = weights_of(run, model)
    return sum(
        term.bytes
        for term in (*_resident_terms(run, model, weights), *resident_vllm(run), *_optimizer_step_terms(run, weights))
    )


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
    """What offloading keeps on the host. A search asks for it before the estimate does."""
    return host_terms(run, model, weights_of(run, model))


@lru_cache(maxsize=4)
def counted_run(run: Run, model: Architecture) -> tuple[Run, Architecture]:
    """The run and its model as they are counted: layers told apart, weights of one rank, rows as long as can be."""
    apart = cut(run, with_layers_apart(run, model))
    return as_counted(run if apart is model else replace(run, model=apart)), apart


def _whole_of(run: Run, model: Architecture) -> Architecture | None:
    """The model that is loaded before AutoTP cuts it, in the engine: deepspeed/runtime/engine.py:280-281@0.18.9."""
    return with_layers_apart(run, model) if run.autotp_size > 1 and run.tensor_parallel_size == 1 else None


def _beyond_vllm(ranged: Callable[[Run, int], Range], run: Run, peak: Phase) -> Range:
    """The range of all but vLLM's share, which is of one piece, and that share."""
    share = sum(term.bytes for term in peak.terms if term.name == VLLM_NAME)
    rest = ranged(run, peak.bytes - share)
    return Range(rest.low + share, rest.high + share)


def phases_of(run: Run, model: Architecture, weights: Weights, whole: Architecture | None = None) -> list[Phase]:
    """Every phase of a step, at its worst moment. ``whole``: what is loaded, where that is cut only later."""
    resident = _resident_terms(run, model, weights)
    states = (*resident, *resident_vllm(run))
    copies, computing = autocast_terms(run, model, weights), dequantized_terms(run, model)
    training = (*states, *retained_terms(run, model))
    losing = (*training, *between_micro_steps(run, weights))
    late = autocast_terms(run, model, weights, "loss")
    load = load_terms(run, whole or model, weights_of(run, whole) if whole else weights)
    compared = ebft_phases(run, model, (*losing, *copies))
    answered = [*rollout_phase(run, model, weights, resident, load), *_of_name("generation", compared)]
    phases = [
        Phase("load", load),
        worst(
            [
                *loss_phases(run, model, weights, (*losing, *copies), (*losing, *late)),
                *_of_name("forward and loss", compared),
            ]
        ),
        worst(backward_phases(run, model, weights, training, computing)),
        Phase("optimizer step", (*states, *_optimizer_step_terms(run, weights))),
    ]
    if run.evaluates:
        scoring = autocast_terms(run, model, weights, "evaluation")
        phases.append(worst(evaluation_phases(run, model, weights, (*states, *computing, *scoring))))
    phases += [worst(answered)] if answered else []
    return [Phase(phase.name, _sourced(run, phase.terms)) for phase in phases]


def _resident_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """What stays from step to step, without vLLM."""
    return (
        *weight_terms(run, model, weights),
        *reference_terms(run, model),
        *network_terms(run, model, weights, weight_divisor(run)),
        *workspace_terms(run, model),
        *secondary_terms(run, weights),
        *optimizer_terms(run, weights),
        *bucket_copies(run, weights),
    )


def _optimizer_step_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """What the optimizer step needs beyond that."""
    buckets = bucket_terms(run) if run.zero_stage == 3 else ()
    return (*step_gradients(run, weights), *step_terms(run, weights), *buckets)


def _of_name(name: PhaseName, phases: Iterable[Phase]) -> list[Phase]:
    """The moments of one phase."""
    return [phase for phase in phases if phase.name == name]


def worst(phases: list[Phase]) -> Phase:
    """The moment that needs most."""
    return max(phases, key=lambda phase: phase.bytes)


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


BY_FORMULA = {SAVED, WORKING, CHECKPOINTS}


def _sourced(run: Run, terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms that need memory; where the model was traced, its activations name the trace as their source."""
    source = traced_source(run)
    return tuple(
        replace(term, source=source) if source and term.part == "activations" and term.source in BY_FORMULA else term
        for term in terms
        if term.bytes
    )
