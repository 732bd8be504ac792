"""A card's rates: what of its datasheet a training step reaches."""

from advisor.hardware import Gpu
from advisor.record import record
from advisor.speed.constants import SHIPPED, Constants

WORKSTATIONS = ("rtx-a", "rtx-6000", "rtx-pro")
HALF_PRECISION_SHARE_OF_FP32 = 0.5
"""TF32 runs at half the rate of bf16."""
PLAIN_SHARE_OF_FP16 = {(6, 0): 0.5, (7, 0): 0.125, (7, 5): 0.125}
"""fp32 by the printed fp16 of cards without bf16, from datasheets: P100 9.3 of 18.7, V100 15.7 of 125, T4 8.1 of 65."""
GEFORCE_TURING = 0.236
"""The same of GeForce, whose tensor cores run at half rate when they add up in fp32: RTX 2080 Ti, 13.45 of 56.9."""


@record(eq=False)
class Card:
    """Rates in operations and bytes a second."""

    gpu: Gpu
    tensor_flops: float
    """Printed dense rate in the run's precision."""
    constants: Constants

    @property
    def kind(self) -> str:
        """Which share of the printed rate it reaches."""
        if is_geforce(self.gpu):
            return "geforce"
        capability = self.gpu.compute_capability
        return "hopper" if capability is None or capability >= (9, 0) else "other"

    def gemm_flops(self, hidden: int) -> float:
        """Rate of the linear layers of a model of this hidden size."""
        balance = self.tensor_flops / self.gpu.bandwidth_bytes_per_s
        return (
            self.tensor_flops
            * self.constants.gemm_share[self.kind].value
            * hidden
            / (hidden + self.constants.half_rate_width.value * balance)
        )

    @property
    def attention_flops(self) -> float:
        """Rate of FlashAttention."""
        return self.tensor_flops * self.constants.attention_share["hopper" if self.kind == "hopper" else "other"].value

    @property
    def bandwidth(self) -> float:
        """Bytes a second of long kernels."""
        return self.gpu.bandwidth_bytes_per_s * self.constants.bandwidth_share.value

    @property
    def elementwise_bandwidth(self) -> float:
        """The same of element-wise kernels, whose data a large cache holds in part."""
        ada = self.gpu.compute_capability == (8, 9)
        return self.bandwidth * (self.constants.large_cache.value if ada else 1.0)


def is_geforce(gpu: Gpu) -> bool:
    """Whether it is a card for desktops."""
    return gpu.id.startswith("rtx-") and not gpu.id.startswith(WORKSTATIONS)


def card_of(gpu: Gpu, precision: str, constants: Constants = SHIPPED) -> Card | None:
    """The card's rates in a precision; None where no tensor rate is printed for it."""
    match precision:
        case "fp16":
            printed = gpu.fp16_tflops
        case "fp32":
            printed = (gpu.bf16_tflops or 0) * HALF_PRECISION_SHARE_OF_FP32 or _plain_tflops(gpu)
        case _:
            # Without units for it bf16 is emulated in fp32; no tensor core takes part.
            printed = gpu.bf16_tflops or _plain_tflops(gpu)
    return Card(gpu, printed * 1e12, constants) if printed else None


def _plain_tflops(gpu: Gpu) -> float | None:
    """The fp32 rate of a card without bf16, from its printed fp16; None for one that is not known."""
    if gpu.bf16 or gpu.fp16_tflops is None or gpu.compute_capability not in PLAIN_SHARE_OF_FP16:
        return gpu.fp16_tflops
    geforce = gpu.compute_capability == (7, 5) and not gpu.data_centre
    return gpu.fp16_tflops * (GEFORCE_TURING if geforce else PLAIN_SHARE_OF_FP16[gpu.compute_capability])
