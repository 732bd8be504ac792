"""What waits for the host: hooks of sharding, copies over PCIe, an optimizer on the CPU."""

from advisor.memory.groups import Weights
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
    match run.sharding:
        case Zero(offload_params="cpu" | "nvme") | Fsdp(offload_params=True):
            moved = (2 * weights.bytes + run.compute_bytes * weights.trained_elements) / run.shard_size
        case Zero(stage=1 | 2 | 3, offload_optimizer="cpu" | "nvme"):
            moved = run.compute_bytes * weights.trained_elements / run.shard_size
        case _:
            moved = 0.0
    return moved / constants.host_copy_bytes_per_second.value


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
            of_node = min(trained, share * per_node) / constants.cpu_adam_node_elements_per_second.value
            seconds = max(share / constants.cpu_adam_elements_per_second.value, of_node)
            return seconds + run.compute_bytes * share / constants.host_copy_bytes_per_second.value
        case Fsdp(offload_params=True):
            return share / constants.plain_cpu_adam_elements_per_second.value
        case _:
            return 0.0
