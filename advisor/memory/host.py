"""Host memory of one node: what offloading keeps there, pinned or pageable, or what loading needs."""

from collections.abc import Sequence

from advisor.hardware import Hardware
from advisor.memory.activations import checkpoint_bytes, saved_bytes
from advisor.memory.deepspeed import SECONDARY, second_partition
from advisor.memory.host_loading import ZEROS, loading_terms
from advisor.memory.ledger import HostTerm, Range
from advisor.memory.nvme import nvme_terms, rounded_up
from advisor.memory.offloading import recomputes_under_hooks, weight_bytes
from advisor.memory.optimizer_states import effective_optimizer, flat_state_width, state_bytes, sub_groups_kept
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture
from advisor.run import Fsdp, Run, Zero

ZERO_OFFLOAD = (
    "deepspeed/runtime/zero/stage_1_and_2.py, stage3.py@0.18.9: master 4, fp32 gradient 4, half staging 2, states;"
    " master and gradient 2 each in half precision, states of DeepSpeedCPUAdam then still fp32 (ops/adam/cpu_adam.py)"
)
ONE_GRADIENT = "deepspeed/runtime/zero/stage_1_and_2.py:563-570@0.18.9: temp_grad_buffer_for_cpu_offload"
PARAM_OFFLOAD = "deepspeed/runtime/zero/stage3.py:905-911@0.18.9: trainable shards always pinned"
ACTIVATIONS = "trl/models/activation_offloading.py:333@1.9.0: pinned copies of what is offloaded, in powers of two"
FSDP_OFFLOAD = "torch CPUOffloadPolicy(pin_memory=True): shards, gradients and states"
PAGED = "bitsandbytes paged optimizers: CUDA managed memory, evicted to the host under pressure"


def host_needed(terms: Sequence[HostTerm], spare: int) -> Range:
    """Bytes of one node; ``spare`` is what its GPUs have left for paged states."""
    low = sum(max(0, term.bytes - spare) if term.paged else term.least for term in terms)
    return Range(low, sum(term.bytes for term in terms))


def host_usable(hardware: Hardware, terms: Sequence[HostTerm]) -> int | None:
    """Bytes that a node has for them, with swap for what is pageable; None where nobody said."""
    if hardware.host_bytes is None:
        return None
    return hardware.host_bytes + min(hardware.swap_bytes, sum(term.bytes for term in terms if not term.pinned))


def host_terms(run: Run, model: Architecture, weights: Weights) -> tuple[HostTerm, ...]:
    """Bytes on each node, over all its ranks: in training, or while it loads, whichever is more."""
    local = run.ranks_of_a_node
    training, loading = _in_training(run, model, weights, local), _while_loading(run, model, weights, local)
    return max(training, loading, key=_least)


def _in_training(run: Run, model: Architecture, weights: Weights, local: int) -> tuple[HostTerm, ...]:
    """What offloading keeps there."""
    return (
        *_zero_offload(run, weights, local),
        *_fsdp_offload(run, weights, local),
        *_paged_states(run, weights, local),
        *offloaded_activations(run, model, local),
    )


def _while_loading(run: Run, model: Architecture, weights: Weights, local: int) -> tuple[HostTerm, ...]:
    """What its processes hold while they load, next to the shards that are offloaded already."""
    made = loading_terms(run, model, local)
    if not made:
        return ()
    match run.sharding:
        case Zero(offload_params="cpu") as zero:
            terms = (*made, *_offloaded_shards(run, weights, local, zero))
        case Fsdp(offload_params=True) as fsdp:
            terms = max(made, _with_shards(fsdp, made, weights, run.shard_size, local), key=_least)
        case _:
            terms = made
    return tuple(term for term in terms if term.bytes)


def _with_shards(
    fsdp: Fsdp, made: tuple[HostTerm, ...], weights: Weights, shards: int, local: int
) -> tuple[HostTerm, ...]:
    """The first process's weights while all shards are made of them; the zeros of the others are gone by then."""
    text = f"{weights.bytes:,} B / {shards} x {local} ranks"
    kept = HostTerm("shards", weights.bytes // shards * local, fsdp.pin_memory, text, FSDP_OFFLOAD)
    return (*(term for term in made if term.name != ZEROS), kept)


def _least(terms: tuple[HostTerm, ...]) -> int:
    """The low end of several."""
    return sum(term.least for term in terms)


def _zero_offload(run: Run, weights: Weights, local: int) -> tuple[HostTerm, ...]:
    """ZeRO-Offload of optimizer and parameters."""
    if not isinstance(run.sharding, Zero):
        return ()
    zero = run.sharding
    shard = -(-weights.trained_elements // run.shard_size)
    moved = shard - sub_groups_kept(run, weights)
    terms: list[HostTerm] = []
    if zero.offload_optimizer == "cpu":
        master = zero.master_bytes
        accumulated = 2 if run.gradient_accumulation_steps > 1 and zero.stage < 3 and master == 4 else 0
        staging = 2 * master + 2 + accumulated
        states = offloaded_state_width(run, zero)
        text = f"{staging} B x {moved:,} x {local} ranks"
        sizes = [width * moved for width in (master, master, 2 + accumulated)]
        asked, pinned = local * sum(sizes), zero.pin_optimizer
        buffers = local * sum(map(rounded_up, sizes)) if pinned else asked
        terms.append(HostTerm("master weights and gradients", buffers, pinned, text, ZERO_OFFLOAD, unrounded=asked))
        text = f"{states:g} B x {moved:,} x {local} ranks"
        terms.append(HostTerm("optimizer states", round(states * moved) * local, False, text, ZERO_OFFLOAD))
        if zero.stage < 3:
            terms.append(_one_gradient(weights, local, pinned))
    if zero.offload_params == "cpu":
        terms += _offloaded_shards(run, weights, local, zero)
    return tuple(term for term in (*terms, *nvme_terms(run, zero, weights, local)) if term.bytes)


def _offloaded_shards(run: Run, weights: Weights, local: int, zero: Zero) -> list[HostTerm]:
    """Parameters that live on the host."""
    shard = -(-weights.trained_elements // run.shard_size)
    trained, frozen = local * rounded_up(2 * shard), weights.frozen_bytes // run.shard_size * local
    text = f"2 B x {shard:,} x {local} ranks"
    terms = [HostTerm("trained shards", trained, True, text, PARAM_OFFLOAD, unrounded=local * 2 * shard)]
    text = f"{weights.frozen_bytes:,} B / {run.shard_size} x {local} ranks"
    terms.append(HostTerm("frozen shards", frozen, zero.pin_params, text, PARAM_OFFLOAD))
    if zero.secondary_partition_size > 1:
        second, text = second_partition(run, weights, zero.secondary_partition_size)
        text = f"{text} x {local} ranks"
        terms.append(HostTerm("second partition", second * local, zero.pin_params, text, SECONDARY))
    return terms


def _one_gradient(weights: Weights, local: int, pinned: bool) -> HostTerm:
    """The buffer through which a gradient's part comes, as large as the largest one: stages 1 and 2."""
    size = 2 * weights.largest_trained
    text = f"2 B x {weights.largest_trained:,}, the largest parameter, x {local} ranks"
    kept = rounded_up(size) if pinned else size
    return HostTerm("one gradient", local * kept, pinned, text, ONE_GRADIENT, unrounded=local * size)


def offloaded_state_width(run: Run, zero: Zero) -> float:
    """Bytes per element of the states of an optimizer that steps on the CPU: DeepSpeedCPUAdam's are fp32."""
    by_cpu_adam = zero.force_cpu_adam or zero.own_optimizer is not None
    return flat_state_width(effective_optimizer(run), 4.0 if by_cpu_adam else zero.master_bytes)


def _fsdp_offload(run: Run, weights: Weights, local: int) -> tuple[HostTerm, ...]:
    """FSDP's ``offload_params``: everything that is sharded lives on the host."""
    if not isinstance(run.sharding, Fsdp) or not run.sharding.offload_params:
        return ()
    states = sum(state_bytes(effective_optimizer(run), group) for group in weights.trained)
    whole = weights.bytes + weights.trained_bytes + states
    text = f"({weights.bytes:,} + {weights.trained_bytes:,} + {states:,}) B / {run.shard_size} x {local} ranks"
    return (
        HostTerm(
            "shards, gradients, states",
            whole // run.shard_size * local,
            run.sharding.pin_memory,
            text,
            FSDP_OFFLOAD,
        ),
    )


def _paged_states(run: Run, weights: Weights, local: int) -> tuple[HostTerm, ...]:
    """Paged optimizers' states, outside torch's allocator."""
    optimizer = effective_optimizer(run)
    if not optimizer.paged:
        return ()
    n = 1 if run.sharding is None else run.shard_size
    states = sum(state_bytes(optimizer, group) for group in weights.trained) // n * local
    return (
        HostTerm(
            "paged optimizer states",
            states,
            False,
            f"{states:,} B over {local} ranks, as pages are evicted",
            PAGED,
            paged=True,
        ),
    )


def offloaded_activations(run: Run, model: Architecture, local: int) -> tuple[HostTerm, ...]:
    """Checkpointed layer inputs that are moved to the host, each a pinned block of its own."""
    if run.activation_offloading is None:
        return ()
    again = max(saved_bytes(run, one) + weight_bytes(run, one) for one in model.blocks)
    layer = again if recomputes_under_hooks(run) else 0
    inputs = [(block.count, checkpoint_bytes(run, block)) for block in model.blocks]
    asked = (sum(count * size for count, size in inputs) + layer) * local
    pinned = (sum(count * rounded_up(size) for count, size in inputs) + layer) * local
    return (
        HostTerm(
            "offloaded activations",
            pinned,
            True,
            f"(layer inputs x {model.layers} layers{f' + {layer:,} B of one layer' if layer else ''}) x {local} ranks",
            ACTIVATIONS,
            unrounded=asked,
        ),
    )
