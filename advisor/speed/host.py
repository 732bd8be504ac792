"""What waits for the host: hooks of sharding, copies over PCIe, an optimizer on the CPU."""

from advisor.memory.groups import Weights
from advisor.memory.host import offloaded_state_width
from advisor.run import Fsdp, Run, Zero
from advisor.speed.constants import Constants

LAUNCHES = "eager PyTorch starts each kernel from Python"
COPIES = "deepspeed/runtime/zero/partition_parameters.py@0.18.9: shards come from pinned memory for each pass"
CPU_ADAM = "deepspeed/ops/adam/cpu_adam.py@0.18.9"


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


def parameter_copies(run: Run, weights: Weights, constants: Constants) -> float:
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
    return moved / constants.host_copy_bytes_per_second.value


def gradient_bytes(run: Run, zero: Zero) -> float:
    """Bytes that a micro-step sends over PCIe for each trained element of the shard.

    deepspeed/runtime/zero/stage_1_and_2.py:1369-1459@0.18.9: the last micro-step copies to the master's type, and of
    several the first copies its gradients out, the others copy the sum in. stage3.py:1744-1778@0.18.9: out and in each.
    """
    steps, half = run.gradient_accumulation_steps, run.compute_bytes
    sums = 2 * half if zero.stage == 3 else half * (steps > 1)
    return sums + zero.master_bytes / steps


def activation_copies(run: Run, constants: Constants) -> float:
    """Seconds of a micro-step to take checkpointed layer inputs to the host in forward, and back in backward."""
    if run.activation_offloading is None or run.model is None:
        return 0.0
    moved = 2 * run.tokens * run.model.hidden_size * run.model.layers * run.compute_bytes
    return moved / constants.host_copy_bytes_per_second.value


def cpu_step(run: Run, weights: Weights, constants: Constants) -> float:
    """Seconds of an optimizer that runs on the CPU, and of the weights' way back."""
    trained = weights.trained_elements
    share = trained / run.shard_size
    match run.sharding:
        case Zero(offload_optimizer="cpu" | "nvme"):
            per_node = run.hardware.gpus_per_node if run.hardware else 1
            width = stepped_bytes(run, run.sharding)
            of_node = width * min(trained, share * per_node) / constants.host_node_bytes_per_second.value
            seconds = max(width * share / constants.host_bytes_per_second.value, of_node)
            return seconds + run.compute_bytes * share / constants.host_copy_bytes_per_second.value
        case Fsdp(offload_params=True):
            return share / constants.plain_cpu_adam_elements_per_second.value
        case _:
            return 0.0


def stepped_bytes(run: Run, zero: Zero) -> float:
    """Bytes of host memory that a step reads and writes for each element: Adam, and what DeepSpeed does around it.

    deepspeed/runtime/zero/stage_1_and_2.py:2139-2157@0.18.9: gradients are scaled in place, and after the step the
    master weights are cast into a buffer.
    """
    master = zero.master_bytes
    adam = 2 * master + master + 2 * offloaded_state_width(run, zero)
    return adam + 2 * master + (master + run.compute_bytes)
