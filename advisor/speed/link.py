"""What GPUs send each other, and over what."""

from collections.abc import Iterable
from typing import Literal, Protocol

from advisor.hardware import Hardware, Link
from advisor.memory.activations import checkpoints
from advisor.memory.activations.dispatched import gpus_met
from advisor.memory.gradients import accumulates_whole
from advisor.memory.weight_groups import Group, Weights
from advisor.record import record
from advisor.run import Fsdp, Run, Zero
from advisor.speed.constants import Constants

RING = "nccl-tests, PERFORMANCE.md: a ring sends (n - 1) / n of the bytes through each link"
BRIDGE_BYTES_PER_SECOND = 56.25e9
"""One way over the NVLink bridge of two RTX 3090 (whitepaper of GA102)."""
RECURRENT = frozenset({"linear", "ssm", "conv"})
"""Mixers without keys and values that all tokens of a row meet."""


class _Carrier(Protocol):
    """Seconds of collectives among ``ranks`` neighbours; or bytes, with ``UNIT``."""

    def gathered(self, bytes_: float, ranks: int) -> float:
        """An all-gather or a reduce-scatter of ``bytes_``."""
        ...

    def across(self, bytes_: float, ranks: int, replicas: int) -> float:
        """An all-reduce of ``bytes_`` that lie in shards on ``ranks`` neighbours, among ``replicas`` of such groups."""
        ...

    def delay(self, collectives: int, ranks: int) -> float:
        """Until the first bytes of so many collectives have gone round."""
        ...


@record(eq=False)
class Links:
    """Bytes a second of one GPU inside its node, and of a node to the others; None on one node."""

    name: Link
    rate: float
    network: float | None
    gpus_per_node: int
    nodes: int
    constants: Constants

    @property
    def source(self) -> str:
        """The link, and the formula of its collectives."""
        return f"{self.name}; {RING}"

    def nodes_of(self, ranks: int) -> int:
        """Nodes that so many neighbours lie on."""
        return -(-ranks // self.gpus_per_node)

    def gathered(self, bytes_: float, ranks: int) -> float:
        """By a ring: the slower of the GPU's own link and the node's."""
        seconds = bytes_ * (ranks - 1) / ranks / self.rate
        nodes = self.nodes_of(ranks)
        return max(seconds, self.between(bytes_, nodes)) if nodes > 1 else seconds

    def across(self, bytes_: float, ranks: int, replicas: int) -> float:
        """Each GPU's shard by a ring of its own; those of a node share its network."""
        nodes = self.nodes // self.nodes_of(ranks)
        here = 2 * bytes_ / ranks * (replicas - 1) / replicas / self.rate
        on_node = bytes_ * min(1.0, self.gpus_per_node / ranks)
        return max(here, self.between(2 * on_node, nodes)) if nodes > 1 else here

    def between(self, bytes_: float, nodes: int) -> float:
        """A ring over nodes."""
        return bytes_ * (nodes - 1) / nodes / self.network if self.network else 0.0

    def delay(self, collectives: int, ranks: int) -> float:
        """Hops over the GPUs of a node, and over nodes."""
        hops = min(ranks, self.gpus_per_node) + self.nodes_of(ranks) if ranks > 1 else 0
        return collectives * hops * self.constants.hop_seconds.value


def links_of(hardware: Hardware, constants: Constants) -> Links:
    """The links of this hardware: as stated, else NVLink where the card has one, else the card's own PCIe."""
    gpu = hardware.gpu
    name: Link = hardware.link or ("nvlink" if gpu.link_bytes_per_s else "pcie")
    match name:
        case "nvlink":
            rate = (gpu.link_bytes_per_s or BRIDGE_BYTES_PER_SECOND) * constants.nvlink_share.value
        case "pcie":
            rate = gpu.pcie_bytes_per_s * constants.pcie_share.value
        case _:
            rate = constants.slow_pcie_bytes_per_second.value
    network = hardware.network_bytes_per_s
    network = network * constants.network_share.value if hardware.nodes > 1 and network else None
    return Links(name, rate, network, hardware.gpus_per_node, hardware.nodes, constants)


class Sent:
    """What one GPU sends, in bytes."""

    def gathered(self, bytes_: float, ranks: int) -> float:
        """A ring passes all of it on, but the GPU's own part, which is left in."""
        return bytes_ if ranks > 1 else 0.0

    def across(self, bytes_: float, ranks: int, replicas: int) -> float:
        """Its shard, to be added and to be handed on."""
        return 2 * bytes_ / ranks if replicas > 1 else 0.0

    def delay(self, collectives: int, ranks: int) -> float:  # noqa: ARG002 (the protocol's)
        """None."""
        return 0.0


UNIT = Sent()


def traffic(run: Run, weights: Weights) -> float:
    """Bytes that one GPU sends in an optimizer step."""
    return run.gradient_accumulation_steps * micro_step(run, weights, UNIT) + step(run, weights, UNIT)


def group_of(run: Run) -> tuple[int, int]:
    """GPUs that gather weights among themselves, neighbours, and how many such groups there are.

    FSDP2 replicates over ``dp_replicate_size``: the mesh is (dp_replicate, dp_shard_cp), and experts that are spread
    leave the other weights sharded over their group as well (axolotl/monkeypatch/accelerate/fsdp2.py:494-512@0.19.0).
    """
    if not isinstance(run.sharding, Fsdp):
        return run.world_size, 1
    ranks = min(run.world_size, run.shard_size * run.expert_parallel_size)
    return ranks, run.world_size // ranks


def second_group(run: Run) -> int:
    """GPUs that hold a second partition of every weight under ZeRO-3, neighbours; 1 without hpZ.

    deepspeed/utils/groups.py:698-727@0.18.9.
    """
    match run.sharding:
        case Zero(stage=3, secondary_partition_size=size):
            return min(max(1, size), run.world_size)
        case _:
            return 1


def micro_step(run: Run, weights: Weights, links: _Carrier) -> float:
    """Seconds on the links in each micro-step. Stage 2 sums gradients over all GPUs, and each keeps its part.

    deepspeed/runtime/zero/stage_1_and_2.py:1297-1321@0.18.9: an all-reduce, by ``use_multi_rank_bucket_allreduce``.
    """
    if run.world_size == 1:
        return 0.0
    layers = run.model.layers if run.model else 0
    reduce, gather = gradients(run, weights), gathered(run, weights)
    ranks, replicas = group_of(run)
    sent = _rows_sent(run, links) + _experts_sent(run, links)
    match run.sharding:
        case Zero(stage=3) if second_group(run) > 1:
            return sent + _gathered_twice(run, weights, links) + links.gathered(reduce, ranks)
        case Zero(stage=3):
            return sent + links.gathered(2 * gather + reduce, ranks) + links.delay(3 * layers, ranks)
        case Zero(stage=2):
            return sent + links.gathered(2 * reduce, ranks) + links.delay(layers, ranks)
        case Fsdp(reshard_after_forward=reshard):
            once = accumulates_whole(run)
            here = links.gathered((2 if reshard else 1) * gather + (0.0 if once else reduce), ranks)
            summed = 0.0 if once else links.across(reduce, ranks, replicas)
            return sent + here + summed + links.delay(3 * layers, ranks)
        case _:
            return sent


def _gathered_twice(run: Run, weights: Weights, links: _Carrier) -> float:
    """Seconds of a micro-step's two gathers with hpZ: within a group, where it has the weights as they are now.

    Trained weights lose their second partition with each optimizer step, and get it back as they are released after
    the next forward: one of a step's gathers is over all GPUs. Frozen ones keep it
    (deepspeed/runtime/zero/stage3.py:597-601,2417, partition_parameters.py:1461-1465,1779-1824@0.18.9).
    """
    layers = run.model.layers if run.model else 0
    near, once = second_group(run), gradients(run, weights) / run.gradient_accumulation_steps
    ranks, _ = group_of(run)
    delays = links.delay(layers, near) + links.delay(2 * layers, ranks)
    return links.gathered(2 * gathered(run, weights) - once, near) + links.gathered(once, ranks) + delays


def step(run: Run, weights: Weights, links: _Carrier) -> float:
    """Seconds on the links once an optimizer step: of FSDP, if several micro-steps are summed first.

    With replicas, the shards of the gradients are then summed over them, once
    (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce@2.13.0).
    """
    if run.world_size == 1:
        return 0.0
    trained = gradients(run, weights)
    ranks, replicas = group_of(run)
    match run.sharding:
        case Zero(stage=0):
            return links.gathered(2 * trained, ranks)
        case Zero(stage=1):
            return links.gathered(3 * trained, ranks)
        case Zero(stage=2):
            return links.gathered(trained, ranks)
        case Fsdp() if accumulates_whole(run):
            return links.gathered(trained, ranks) + links.across(trained, ranks, replicas)
        case None:
            return links.gathered(2 * weights.trained_bytes, ranks)
        case _:
            return 0.0


def _rows_sent(run: Run, links: _Carrier) -> float:
    """Seconds of a micro-step in which the GPUs that share a row pass keys and values on, layer by layer.

    ring_flash_attn/ring_flash_attn.py:8-70@0.1.8, llama3_flash_attn_varlen.py:70-290: forward and recomputation each
    once; backward once more, and twice as much for the gradients, which are summed in fp32.
    """
    ranks = run.context_parallel_size
    if ranks == 1 or run.model is None:
        return 0.0
    mixers = [(block.count, block.attention) for block in run.model.blocks]
    widths = sum(
        count * (mixer.key_width + mixer.value_width)
        for count, mixer in mixers
        if mixer is not None and mixer.kind not in RECURRENT
    )
    passes = 1 + checkpoints(run) + (2 if run.sample_packing else 3)
    # An all-gather of whole rows sends what the ring does: each GPU's part to all others.
    whole = ranks * run.tokens * widths * run.compute_bytes
    return links.gathered(passes * whole, ranks)


def _experts_sent(run: Run, links: _Carrier) -> float:
    """Seconds of a micro-step in which tokens travel to their experts and back, in each forward and in backward.

    axolotl/integrations/expert_parallel/experts_fn.py:186-255@0.19.0. A token goes once to each GPU that has one of
    its experts.
    """
    ranks = run.expert_parallel_size
    if ranks == 1 or run.model is None:
        return 0.0
    moved = 0.0
    for block in run.model.blocks:
        if block.mlp is not None and block.mlp.experts:
            moved += block.count * gpus_met(run, block.mlp) * block.hidden
    directions = 2 * (2 + checkpoints(run))
    return links.gathered(directions * run.tokens * moved * run.compute_bytes, ranks)


def gradients(run: Run, weights: Weights) -> float:
    """Bytes of all gradients as DeepSpeed and FSDP send them."""
    return float(run.compute_bytes * (weights.trained_elements - elsewhere(run, weights.trained, "elements")))


def gathered(run: Run, weights: Weights) -> float:
    """Bytes of all weights as they are gathered."""
    return weights.frozen_bytes - elsewhere(run, weights.frozen, "bytes") + gradients(run, weights)


def elsewhere(run: Run, groups: Iterable[Group], what: Literal["elements", "bytes"]) -> float:
    """What of the experts lies on other GPUs for good, where they are spread: no GPU gathers those."""
    experts = sum(getattr(group, what) for group in groups if "experts" in group.name)
    return experts * (1 - 1 / run.expert_parallel_size)


def copied(run: Run, weights: Weights) -> float:
    """Bytes that the card reads and writes in a micro-step to lay out what DeepSpeed sends, and what arrived.

    Gradients go into a bucket, are divided, and lie by rank (comm/coalesced_collectives.py:186-201@0.18.9) or flat
    (zero/stage_1_and_2.py:1293,1688@0.18.9); gathered weights are copied out (zero/partition_parameters.py:767@0.18.9).
    """
    if run.world_size == 1:
        return 0.0
    match run.sharding:
        case Zero(stage=3):
            return 2 * (2 * gathered(run, weights) + 3 * gradients(run, weights))
        case Zero(stage=2):
            return 2 * 3 * gradients(run, weights)
        case _:
            return 0.0
