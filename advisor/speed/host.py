"""What waits for the host: hooks of sharding, copies over PCIe, an optimizer on the CPU."""

from advisor.hardware import Hardware
from advisor.memory.host import offloaded_state_width
from advisor.memory.weight_groups import Weights
from advisor.record import record
from advisor.run import Fsdp, Run, Zero
from advisor.speed.card import is_geforce
from advisor.speed.constants import Constants

LAUNCHES = "eager PyTorch starts each kernel from Python"
COPIES = "deepspeed/runtime/zero/partition_parameters.py@0.18.9: shards come from pinned memory for each pass"
CPU_ADAM = "deepspeed/ops/adam/cpu_adam.py@0.18.9"


DESKTOP_CARDS = 2
"""A desktop's CPU has lanes for no more."""
PCIE_5 = 63e9


@record(eq=False)
class Host:
    """What one process has of its node, by the generation of the node's cards: nobody states a host's own rates."""

    generation: str
    """Of its memory, by the names of ``host_bytes_per_second``."""
    copies: float
    """Bytes a second of pinned copies over PCIe, in one direction while others go in the other."""
    memory: float
    """Bytes a second that all processes of the node read and write in a step on the CPU."""
    process: float
    """Of these, one process: it stays on its socket."""

    @property
    def desktop(self) -> bool:
        """Whether it is no server."""
        return self.generation == "desktop"


def host_of(hardware: Hardware, constants: Constants) -> Host:
    """Desktops have one socket of two channels; servers two of DDR4, with PCIe 5 of DDR5."""
    gpu = hardware.gpu
    desktop = is_geforce(gpu) and hardware.gpus_per_node <= DESKTOP_CARDS
    blackwell = gpu.compute_capability is not None and gpu.compute_capability >= (10, 0)
    of_server = "ddr4" if gpu.pcie_bytes_per_s < PCIE_5 else "ddr5-5600" if blackwell else "ddr5"
    generation = "desktop" if desktop else of_server
    memory = constants.host_bytes_per_second[generation].value
    copies = constants.host_copy_share.value * gpu.pcie_bytes_per_s
    return Host(generation, copies, memory, memory if desktop else memory / 2)


def python(run: Run, launches: float, host: Host, constants: Constants) -> float:
    """Seconds of a micro-step in Python: what starts kernels, the hooks of sharding, and the trainer's own loop."""
    seconds = launches * constants.launch_seconds.value + hooks(run, constants) + constants.trainer_seconds.value
    return seconds * (constants.desktop_share.value if host.desktop else 1.0)


def hooks(run: Run, constants: Constants) -> float:
    """Seconds of a micro-step in the hooks of DeepSpeed or FSDP, layer by layer."""
    layers = run.model.layers if run.model else 0
    match run.sharding:
        case Zero(stage=3):
            return layers * constants.zero3_layer_seconds.value
        case Fsdp():
            return layers * constants.fsdp_layer_seconds.value
        case _:
            return 0.0


def parameter_copies(run: Run, weights: Weights, host: Host) -> float:
    """Seconds of a micro-step to bring offloaded weights to the card, forward and backward, and gradients back."""
    share = weights.trained_elements / run.shard_size
    match run.sharding:
        case Zero(offload_params="cpu" | "nvme"):
            moved = 2 * weights.bytes / run.shard_size + gradient_bytes(run, run.sharding) * share
        case Fsdp(offload_params=True):
            moved = 2 * weights.bytes / run.shard_size + run.compute_bytes * share
        case Zero(stage=1 | 2 | 3, offload_optimizer="cpu" | "nvme"):
            moved = gradient_bytes(run, run.sharding) * share
        case _:
            moved = 0.0
    return moved / host.copies


def gradient_bytes(run: Run, zero: Zero) -> float:
    """Bytes that a micro-step sends over PCIe for each trained element of the shard.

    deepspeed/runtime/zero/stage_1_and_2.py:1369-1459@0.18.9: the last micro-step copies to the master's type, and of
    several the first copies its gradients out, the others copy the sum in. stage3.py:1744-1778@0.18.9: out and in each.
    """
    steps, half = run.gradient_accumulation_steps, run.compute_bytes
    sums = 2 * half if zero.stage == 3 else half * (steps > 1)
    return sums + zero.master_bytes / steps


def activation_copies(run: Run, host: Host) -> float:
    """Seconds of a micro-step to take checkpointed layer inputs to the host in forward, and back in backward."""
    if run.activation_offloading is None or run.model is None:
        return 0.0
    moved = 2 * run.tokens * run.model.hidden_size * run.model.layers * run.compute_bytes
    return moved / host.copies


def cpu_step(run: Run, weights: Weights, host: Host, constants: Constants) -> float:
    """Seconds of an optimizer that runs on the CPU, and of the weights' way back."""
    trained = weights.trained_elements
    share = trained / run.shard_size
    match run.sharding:
        case Zero(offload_optimizer="cpu" | "nvme"):
            width = _stepped_bytes(run, run.sharding)
            of_node = width * min(trained, share * run.ranks_of_a_node) / host.memory
            return max(width * share / host.process, of_node) + run.compute_bytes * share / host.copies
        case Fsdp(offload_params=True):
            generation = host.memory / constants.host_bytes_per_second["ddr4"].value
            return share / (constants.plain_cpu_adam_elements_per_second.value * max(1.0, generation))
        case _:
            return 0.0


def _stepped_bytes(run: Run, zero: Zero) -> float:
    """Bytes of host memory that a step reads and writes for each element: Adam, and what DeepSpeed does around it.

    deepspeed/runtime/zero/stage_1_and_2.py:2139-2157@0.18.9: gradients are scaled in place, and after the step the
    master weights are cast into a buffer.
    """
    master = zero.master_bytes
    adam = 2 * master + master + 2 * offloaded_state_width(run, zero)
    return adam + 2 * master + (master + run.compute_bytes)
