"""What ZeRO-Infinity keeps on a node that offloads to NVMe: buffers and gradients on the host, states on disk."""

from advisor.memory.ledger import HostTerm
from advisor.memory.optimizer_states import effective_optimizer, flat_state_width, largest_sub_group
from advisor.memory.weight_groups import Weights
from advisor.run import Run, Zero
from advisor.util import gib

SWAP = "deepspeed/runtime/swap_tensor/optimizer_utils.py:183-187, utils.py:181-190@0.18.9"
GRADIENTS = "deepspeed/runtime/zero/stage3.py:633-637@0.18.9: all gradients of the rank's shards"
PARAMETERS = "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:104-131@0.18.9"
IN_MEMORY = "deepspeed/runtime/zero/stage3.py:762-782@0.18.9: up to `max_in_cpu` elements, pinned"


def nvme_terms(run: Run, zero: Zero, weights: Weights, local: int) -> tuple[HostTerm, ...]:
    """Bytes of one node's host memory, over its ``local`` ranks."""
    shard = -(-weights.trained_elements // run.shard_size)
    terms: list[HostTerm] = []
    if zero.offload_optimizer == "nvme":
        piece = largest_sub_group(weights, run.shard_size, zero.sub_group_size)
        swapped = local * zero.swap_buffers * rounded_up(4 * piece)
        text = f"{zero.swap_buffers} x 4 B x {piece:,}, the largest sub-group, x {local} ranks"
        asked = local * zero.swap_buffers * 4 * piece
        terms.append(HostTerm("optimizer swap buffers", swapped, True, text, SWAP, unrounded=asked))
        kept, asked = rounded_up(2 * shard) if zero.pin_optimizer else 2 * shard, local * 2 * shard
        text = f"2 B x {shard:,} x {local} ranks"
        terms.append(HostTerm("gradients", local * kept, zero.pin_optimizer, text, GRADIENTS, unrounded=asked))
    if zero.offload_params == "nvme":
        buffers, stays = rounded_up(2 * zero.param_swap_elements), min(shard, zero.max_in_cpu)
        text = f"2 B x {zero.param_swap_elements:,} x {local} ranks"
        asked = local * 2 * zero.param_swap_elements
        terms.append(HostTerm("parameter swap buffers", local * buffers, True, text, PARAMETERS, unrounded=asked))
        text, asked = f"2 B x {stays:,} x {local} ranks", local * 2 * stays
        kept = local * rounded_up(2 * stays)
        terms.append(HostTerm("trained shards", kept, True, text, IN_MEMORY, unrounded=asked))
    return tuple(term for term in terms if term.bytes)


def disk_note(run: Run, weights: Weights) -> str:
    """What lies on each node's disk, as a note; nothing where nothing does."""
    zero, nodes = run.zero, run.hardware.nodes if run.hardware else 1
    if zero is None:
        return ""
    width = zero.master_bytes + flat_state_width(effective_optimizer(run), 4.0)
    states = width * weights.trained_elements if zero.offload_optimizer == "nvme" else 0
    halves = 2 * weights.elements if zero.offload_params == "nvme" else 0
    bytes_ = round((states + halves) / nodes)
    return f"{gib(bytes_)} lie on the disk of each node, at `nvme_path`" if bytes_ else ""


def rounded_up(bytes_: int) -> int:
    """A pinned block takes the next power of two (pytorch issues 95823, 150517)."""
    return 1 << (bytes_ - 1).bit_length() if bytes_ > 1 else bytes_
