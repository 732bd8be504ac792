"""Kinds of runs, as far as step times are judged by them: a kind with few published figures is said with doubt."""

from collections.abc import Iterator

from advisor.hardware import Gpu, Hardware
from advisor.record import record
from advisor.run import Fsdp, Run, Zero
from advisor.speed.card import is_geforce
from advisor.speed.constants import SHIPPED
from advisor.speed.host import host_of

LEAST_FIGURES, LEAST_SOURCES = 10, 2
"""Of a kind that is said with the usual range, which then holds at least ``HELD`` of them."""
HELD = 0.8


@record
class Kinds:
    """Of one run, as people name them."""

    method: str
    """``full``, ``lora``, or the quantization that an adapter sits on."""
    sharding: str
    card: str

    def __iter__(self) -> Iterator[str]:
        yield from (self.method, self.sharding, self.card)


def kinds_of(run: Run) -> Kinds:
    """The kinds of a run on known hardware."""
    assert run.hardware is not None
    return Kinds(run.quantization or run.adapter or "full", sharding(run, run.hardware), card(run.hardware.gpu))


def sharding(run: Run, hardware: Hardware) -> str:
    """What is divided among GPUs, and what lies on which host. Whole weights on several GPUs send gradients alone."""
    match run.sharding:
        case Zero(offload_params="cpu" | "nvme") | Fsdp(offload_params=True):
            return "parameters on the host"
        case Zero(offload_optimizer="cpu" | "nvme"):
            return f"optimizer on a host: {host_of(hardware, SHIPPED).generation}"
        case Zero(stage=3):
            return "ZeRO-3"
        case Fsdp():
            return "FSDP"
        case _:
            return "one GPU" if run.world_size == 1 else "weights whole on several GPUs"


def card(gpu: Gpu) -> str:
    """Cards that the same constants are used for, of one generation."""
    capability = gpu.compute_capability
    if is_geforce(gpu) and capability is not None:
        return "GeForce RTX 30 and 40" if (8, 0) <= capability < (9, 0) else f"GeForce {capability[0]}.{capability[1]}"
    return {(8, 0): "A100", (9, 0): "H100 and H200"}.get(capability or (0, 0), gpu.title)


EVIDENCED = frozenset(
    {
        *("full", "lora", "nf4", "gptq"),
        *("one GPU", "weights whole on several GPUs", "ZeRO-3", "FSDP"),
        *("A100", "H100 and H200", "GeForce RTX 30 and 40"),
    }
)
"""Kinds with enough figures; a test counts them in ``accuracy/speed.jsonl``."""
