"""What GPUs send each other, and over what."""

from advisor.hardware import Hardware, Link
from advisor.memory.gradients import accumulates_whole
from advisor.memory.groups import Weights
from advisor.record import record
from advisor.run import Fsdp, Run, Zero
from advisor.speed.constants import SHIPPED, Constants

RING = "nccl-tests, PERFORMANCE.md: a ring sends (n - 1) / n of the bytes through each link"
BRIDGE_BYTES_PER_SECOND = 56.25e9
"""One way over the NVLink bridge of two RTX 3090 (whitepaper of GA102)."""


@record(eq=False)
class Links:
    """Bytes a second of one GPU inside its node, and of a node to the others; None on one node."""

    name: Link
    assumed: bool
    """Whether PCIe is a guess, and anything goes over it."""
    inside: float
    network: float | None
    hops: int
    constants: Constants

    @property
    def source(self) -> str:
        """The link, and the formula of its collectives."""
        return f"{self.name}; {RING}"

    def gathered(self, bytes_: float) -> float:
        """Seconds of an all-gather or a reduce-scatter of ``bytes_``, over all GPUs."""
        seconds = bytes_ / self.inside
        return seconds if self.network is None else max(seconds, bytes_ / self.network)


def links_of(hardware: Hardware, constants: Constants) -> Links:
    """The links of this hardware: as stated, else NVLink where the card has one, else PCIe."""
    gpu, n, nodes = hardware.gpu, hardware.gpus_per_node, hardware.nodes
    name: Link = hardware.link or ("nvlink" if gpu.link_bytes_per_s else "pcie")
    match name:
        case "nvlink":
            rate = (gpu.link_bytes_per_s or BRIDGE_BYTES_PER_SECOND) * constants.nvlink_share.value
        case "pcie":
            rate = gpu.pcie_bytes_per_s * constants.pcie_share.value
        case _:
            rate = constants.slow_pcie_bytes_per_second.value
    world = n * nodes
    inside = rate * world / max(1, world - 1)
    network = None
    if nodes > 1 and hardware.network_bytes_per_s:
        network = hardware.network_bytes_per_s * constants.network_share.value * nodes / (nodes - 1)
    assumed = n > 1 and hardware.link is None and name == "pcie"
    return Links(name, assumed, inside, network, n + nodes if world > 1 else 0, constants)


UNIT = Links("pcie", assumed=False, inside=1.0, network=None, hops=0, constants=SHIPPED)
"""A byte a second: seconds on it are bytes."""


def traffic(run: Run, weights: Weights) -> float:
    """Bytes that one GPU sends in an optimizer step."""
    return run.gradient_accumulation_steps * micro_step(run, weights, UNIT) + step(run, weights, UNIT)


def micro_step(run: Run, weights: Weights, links: Links) -> float:
    """Seconds on the links in each micro-step. Stage 2 sums gradients over all GPUs, and each keeps its part.

    deepspeed/runtime/zero/stage_1_and_2.py:1297-1321@0.18.9: an all-reduce, by ``use_multi_rank_bucket_allreduce``.
    """
    if run.world_size == 1:
        return 0.0
    layers = run.model.layers if run.model else 0
    reduce, gather = gradients(run, weights), gathered(run, weights)
    match run.sharding:
        case Zero(stage=3):
            return links.gathered(2 * gather + reduce) + latency(3 * layers, links)
        case Zero(stage=2):
            return links.gathered(2 * reduce) + latency(layers, links)
        case Fsdp(reshard_after_forward=reshard):
            here = 0.0 if accumulates_whole(run) else reduce
            return links.gathered((2 if reshard else 1) * gather + here) + latency(3 * layers, links)
        case _:
            return 0.0


def step(run: Run, weights: Weights, links: Links) -> float:
    """Seconds on the links once an optimizer step: of FSDP, if several micro-steps are summed first."""
    if run.world_size == 1:
        return 0.0
    trained = gradients(run, weights)
    match run.sharding:
        case Zero(stage=0):
            return links.gathered(2 * trained)
        case Zero(stage=1):
            return links.gathered(3 * trained)
        case Zero(stage=2):
            return links.gathered(trained)
        case Fsdp() if accumulates_whole(run):
            return links.gathered(trained)
        case None:
            return links.gathered(2 * weights.trained_bytes)
        case _:
            return 0.0


def gradients(run: Run, weights: Weights) -> float:
    """Bytes of all gradients as DeepSpeed and FSDP send them."""
    return float(run.compute_bytes * weights.trained_elements)


def gathered(run: Run, weights: Weights) -> float:
    """Bytes of all weights as they are gathered."""
    return weights.frozen_bytes + gradients(run, weights)


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


def latency(collectives: int, links: Links) -> float:
    """Seconds until the first bytes of so many collectives have gone round."""
    return collectives * links.hops * links.constants.hop_seconds.value
