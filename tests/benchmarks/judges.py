"""Other opinions of how long a step takes, so that a plan is not right by its own constants alone.

The constants of the step time, each group stretched and shrunk; and a rough model that shares none of them: fixed
shares of the peak and of the links, after what is usually reached.
"""

from collections.abc import Callable

from advisor.memory.activations import checkpoints
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.run import Fsdp, Run, Zero
from advisor.speed import StepTime, step_time
from advisor.speed.constants import SHIPPED, Constants
from advisor.speed.stretched import sets_of_constants

Judge = Callable[[Run], float | None]

PEAK_SHARE = {"geforce": 0.60, "hopper": 0.45, "other": 0.54}
NVLINK_SHARE, SERVER_PCIE, DESKTOP_PCIE = 0.25, 18e9, 10e9
CPU_ADAM_BYTES, SERVER_HOST, DESKTOP_HOST = 28, 93e9, 50e9
LAYER_SECONDS = 3e-3
LOGIT_BYTES = {"liger-fused": 10, "chunked": 10, "cut": 4}
DEQUANTIZED_BYTES = 6


def judges() -> dict[str, Judge]:
    """By name; the first is the advisor's own."""
    found: dict[str, Judge] = {"own": own}
    for name, constants in sets_of_constants().items():
        if constants is not SHIPPED:
            found[name] = by(constants)
    return {**found, "rough": rough}


def own(run: Run) -> float | None:
    """The advisor's step time."""
    return seconds(run, SHIPPED)


def seconds(run: Run, constants: Constants) -> float | None:
    """A step time by some constants."""
    found = step_time.__wrapped__(run, constants=constants)
    return found.expected if isinstance(found, StepTime) else None


def by(constants: Constants) -> Judge:
    """The advisor's step time with other constants."""
    return lambda run: seconds(run, constants)


def rough(run: Run) -> float | None:
    """A roofline with fixed shares: the card and the links overlap in part, the host does not."""
    if run.model is None or run.hardware is None:
        return None
    weights = weights_of(run, run.model)
    steps = run.gradient_accumulation_steps
    on_card, sent = card_seconds(run, weights), sent_bytes(run, weights) / link_rate(run)
    hidden = {3: 0.45}.get(run.sharding.stage, 0.3) if isinstance(run.sharding, Zero) else 0.25
    micro_step = max(on_card, sent) + hidden * min(on_card, sent) + host_bytes(run, weights) / pcie_rate(run)
    return steps * micro_step + once(run, weights)


def card_seconds(run: Run, weights: Weights) -> float:
    """Seconds of a micro-step on the card: products, or a read of the weights, or launches, whichever is longest."""
    assert run.model is not None and run.hardware is not None
    gpu, model = run.hardware.gpu, run.model
    tensor = (gpu.bf16_tflops or gpu.fp16_tflops or 1) * 1e12
    mlps = [(block.count, block.mlp, block.hidden) for block in model.blocks if block.mlp is not None]
    idle = sum(n * 3 * hidden * mlp.width * (mlp.experts - mlp.experts_per_token) for n, mlp, hidden in mlps)
    experts = any(mlp.experts for _, mlp, _ in mlps)
    forwards = 1 + checkpoints(run) + run.scores_reference
    passes = forwards + (1.1 if run.adapter else 2)
    widths = sum(block.count * block.attention.query_width for block in model.blocks if block.attention is not None)
    operations = run.tokens * (2.0 * (weights.elements - idle) + 2.0 * run.sequence_len * widths)
    launches = LAYER_SECONDS * model.layers * (3 if experts else 1) * (1.6 if run.adapter else 1)
    products = passes * operations / (tensor * PEAK_SHARE[kind_of(run)])
    read = passes * weights.bytes / gpu.bandwidth_bytes_per_s
    logits = LOGIT_BYTES.get(run.loss, 24) * run.tokens * model.outputs
    moved = logits + (DEQUANTIZED_BYTES * passes * weights.elements if run.quantization else 0)
    return max(products, read, launches * (1.33 if checkpoints(run) else 1)) + moved / gpu.bandwidth_bytes_per_s


def kind_of(run: Run) -> str:
    """Which share of the peak a card reaches."""
    assert run.hardware is not None
    if not run.hardware.gpu.data_centre:
        return "geforce"
    return "hopper" if (run.hardware.gpu.compute_capability or (9, 0)) >= (9, 0) else "other"


def link_rate(run: Run) -> float:
    """Bytes a second between GPUs."""
    assert run.hardware is not None
    gpu, link = run.hardware.gpu, run.hardware.link
    nvlink = gpu.link_bytes_per_s if link in {None, "nvlink"} else None
    return nvlink * NVLINK_SHARE if nvlink else pcie_rate(run)


def pcie_rate(run: Run) -> float:
    """Bytes a second to the host."""
    assert run.hardware is not None
    return SERVER_PCIE if run.hardware.gpu.data_centre else DESKTOP_PCIE


def sent_bytes(run: Run, weights: Weights) -> float:
    """Bytes that a GPU sends in a micro-step."""
    trained, whole = 2.0 * weights.trained_elements, 2.0 * weights.trained_elements + weights.frozen_bytes
    if run.world_size == 1:
        return 0.0
    match run.sharding:
        case Zero(stage=3):
            return 2 * whole + trained
        case Zero(stage=2):
            return trained
        case Fsdp(reshard_after_forward=reshard):
            return (2 if reshard else 1) * whole + trained
        case _:
            return 0.0


def host_bytes(run: Run, weights: Weights) -> float:
    """Bytes between a GPU and the host in a micro-step."""
    assert run.model is not None
    moved = 0.0
    match run.sharding:
        case Zero(offload_params="cpu" | "nvme") | Fsdp(offload_params=True):
            moved = (2 * weights.bytes + 2 * weights.trained_elements) / run.shard_size
        case Zero(offload_optimizer="cpu" | "nvme"):
            moved = 2 * weights.trained_elements / run.shard_size
        case _:
            pass
    offloaded = 0.2 if run.activation_offloading else 0.0
    return moved + offloaded * 4.0 * run.tokens * run.model.hidden_size * run.model.layers


def once(run: Run, weights: Weights) -> float:
    """Seconds at the end of a step: gradients sent once, and the optimizer."""
    assert run.hardware is not None
    trained = weights.trained_elements
    match run.sharding:
        case Zero(stage=0 | 1) | None:
            sent = 4.0 * trained
        case Zero(stage=2):
            sent = 2.0 * trained
        case _:
            sent = 0.0
    sent = sent / link_rate(run) if run.world_size > 1 else 0.0
    share = trained / run.shard_size
    match run.sharding:
        case Zero(offload_optimizer="cpu" | "nvme") | Fsdp(offload_params=True):
            host = SERVER_HOST if run.hardware.gpu.data_centre else DESKTOP_HOST
            return sent + CPU_ADAM_BYTES * share * run.hardware.gpus_per_node / host
        case _:
            return sent + 20 * share / run.hardware.gpu.bandwidth_bytes_per_s
