"""The step time without a source: its figures scored by constants that none of them moved.

Each constant that was chosen with figures in view has a second value here, from datasheets and counts alone.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import cast

from advisor.record import record, replace
from advisor.speed import constants
from advisor.speed.constants import Constant

ADAM = "arXiv:2101.06840, table 4: a billion in 0.24 s"
LAYER = "a trace of transformers' LlamaDecoderLayer (5.16.1): 38 kernels forward, 69 backward"


Value = Constant | dict[str, Constant]


@record
class Unmoved:
    """What a constant would be without the figures that moved it, and why."""

    value: float
    source: str


UNMOVED: Mapping[str, Unmoved] = {
    "GEMM_SHARE geforce": Unmoved(0.75, "as other cards"),
    "GEMM_SHARE hopper": Unmoved(0.75, "as other cards"),
    "GEMM_SHARE other": Unmoved(0.80, "cuBLAS on A100: 250 of 312 TFLOPS"),
    "HALF_RATE_WIDTH": Unmoved(2.0, "a product has half as many operations a byte as its width"),
    "FLASH_1_SHARE": Unmoved(0.5, "arXiv:2307.08691, abstract: the second version is twice as fast"),
    "LARGE_CACHE": Unmoved(1.0, "no effect"),
    "LAUNCH_SECONDS": Unmoved(10e-6, "5 us a launch, as much again for autograd"),
    "FORWARD_LAUNCHES": Unmoved(38, LAYER),
    "BACKWARD_LAUNCHES": Unmoved(1.8, LAYER),
    "DEQUANTIZE_LAUNCHES": Unmoved(2, "a kernel for weights and one for absmax"),
    "ZERO3_LAYER_SECONDS": Unmoved(3e-3, "60 hooks of a layer's modules at 50 us"),
    "FSDP_LAYER_SECONDS": Unmoved(0.2e-3, "four hooks of a layer at 50 us"),
    "DEQUANTIZE_COST gptq": Unmoved(2.0, "as nf4"),
    "ADAPTER_BYTES": Unmoved(4, "read and written once in half precision"),
    "ZERO3_LINK_SHARE": Unmoved(1.0, "as NCCL's rings"),
    "PCIE_SHARE": Unmoved(0.5, "into host memory and out of it"),
    "SLOW_PCIE_BYTES_PER_SECOND": Unmoved(2e9, "half of four lanes of PCIe 3"),
    "HOST_COPY_BYTES_PER_SECOND": Unmoved(24e9, "pinned copies of one process over PCIe 4"),
    "CPU_ADAM_ELEMENTS_PER_SECOND": Unmoved(4e9, ADAM),
    "CPU_ADAM_NODE_ELEMENTS_PER_SECOND": Unmoved(4e9, ADAM),
}


@contextmanager
def without(repository: str) -> Generator[None]:
    """The constants without a repository's figures. It changes the times of all callers, so it is for scores alone."""
    before = moved_by(repository)
    try:
        for name, value in before.items():
            setattr(constants, name, unmoved(name, value, repository))
        yield
    finally:
        for name, value in before.items():
            setattr(constants, name, value)


def moved_by(repository: str) -> dict[str, Value]:
    """The constants, and tables of them, that a repository's figures moved."""
    kinds = (Constant, dict)
    every = cast(
        "dict[str, Value]", {name: value for name, value in vars(constants).items() if isinstance(value, kinds)}
    )
    names = (name for name, value in every.items() if name.isupper() and repository in sources(value))
    return {name: every[name] for name in names}


def sources(value: Value) -> set[str]:
    """The repositories whose figures moved a constant, or one of a table."""
    one_or_more = [value] if isinstance(value, Constant) else list(value.values())
    return {source for one in one_or_more for source in one.chosen_from}


def unmoved(name: str, value: Value, repository: str) -> Value:
    """A constant, or a table of them, without a repository's figures."""
    if isinstance(value, Constant):
        return replace(value, value=UNMOVED[name].value) if repository in value.chosen_from else value
    return {key: cast("Constant", unmoved(f"{name} {key}", one, repository)) for key, one in value.items()}
