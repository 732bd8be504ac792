"""A GPU and a set of them: what the estimate needs to know of hardware."""

from dataclasses import field
from typing import Literal

from advisor.record import record
from advisor.util import gib

GIB = 1 << 30
MIB = 1 << 20
UNITS = {"TiB": 1 << 40, "GiB": GIB, "TB": 10**12, "GB": 10**9, "MiB": 1 << 20, "MB": 10**6, "B": 1}

Link = Literal["nvlink", "pcie", "pcie-slow"]

DETECTED = "detected"
"""The ``source`` of hardware that was found on this machine."""

# 0.96 to 1.07 GiB with NCCL's communicators, read three times on A100 40GB and H100 NVL (gpus.json).
OUTSIDE_TORCH_ON_SEVERAL_GPUS = int(1.1 * GIB)


@record
class Gpu:
    """One accelerator as torch sees it.

    ``id`` is the catalogue's name, ``title`` the one for people. ``total_bytes`` is what torch reports as
    ``total_memory`` on Linux, the lowest credible value. Bytes a second are in one direction;
    ``link_bytes_per_s`` is NVLink or Infinity Fabric among all GPUs of a node, None without. TFLOPS are dense
    tensor rates with fp32 accumulation, None without such units. ``compute_capability`` is None for AMD.
    ``flash_attention``: FlashAttention-2 runs on it, which takes compute capability 8.0, or CDNA2 and later.
    """

    id: str
    title: str
    vendor: str
    compute_capability: tuple[int, int] | None
    total_bytes: int
    bf16: bool
    fp8: bool
    bandwidth_bytes_per_s: float
    bf16_tflops: float | None
    fp16_tflops: float | None
    link_bytes_per_s: float | None
    pcie_bytes_per_s: float
    gpus_per_node: int
    flash_attention: bool
    data_centre: bool = True
    nominal_gb: int = 0
    """The size on the label; detection cannot read it and leaves 0."""
    context_bytes: int = int(0.65 * GIB)
    """What one process holds outside torch's allocator: CUDA context and kernels, without NCCL."""
    driver_bytes: int | None = None
    """nvidia-smi's total less ``total_bytes``: what the driver keeps. None where nvidia-smi was not read."""
    host_bytes: int = 64 * GIB
    """Host memory for each card in a common machine (``host_gib_per_gpu`` of gpus.json)."""
    approximate: str = ""
    """What is rough of it; said wherever it is used."""

    @property
    def tf32(self) -> bool:
        """Whether it computes in TF32: NVIDIA's from Ampere on (transformers/utils/import_utils.py:690-707@5.16.1)."""
        return self.compute_capability is not None and self.compute_capability >= (8, 0)

    @property
    def roughly(self) -> str:
        """That in words: ``H20 is approximate: ...``; empty for a card whose figures were read."""
        return f"{self.title} is approximate: {self.approximate}" if self.approximate else ""


@record
class Hardware:
    """``nodes`` machines of ``gpus_per_node`` equal GPUs. Sizes in bytes.

    ``host_bytes`` is per node, as stated or detected, ``swap_bytes`` what a detected one can page out to.
    ``free_bytes`` is what others leave of a GPU, as stated, or the smallest of detected ones. ``source`` says where
    they were named, ``assumed`` what their name left open and how it was read.
    """

    gpu: Gpu
    gpus_per_node: int
    nodes: int = 1
    host_bytes: int | None = None
    free_bytes: int | None = None
    source: str = ""
    assumed: str = field(default="", compare=False)
    link: Link | None = None
    """What the GPUs of a node are linked by, where it is stated."""
    network_bytes_per_s: float | None = None
    """Of a node to the others, in one direction, where it is stated."""
    swap_bytes: int = 0
    installed: int | None = None
    """The cards of a detected machine, those that CUDA_VISIBLE_DEVICES hides among them."""

    @property
    def world_size(self) -> int:
        """Processes, one a GPU."""
        return self.nodes * self.gpus_per_node

    @property
    def link_assumed(self) -> bool:
        """Whether the GPUs of a node are taken to be linked by their own PCIe, for nothing else is known."""
        return self.gpus_per_node > 1 and self.link is None and not self.gpu.link_bytes_per_s

    @property
    def outside_torch(self) -> int:
        """Bytes of one GPU outside torch's allocator: CUDA context, kernels, and NCCL with several GPUs."""
        return OUTSIDE_TORCH_ON_SEVERAL_GPUS if self.world_size > 1 else self.gpu.context_bytes

    @property
    def usable(self) -> int:
        """Bytes that torch can have of one GPU: its total, or what is free of it, less ``outside_torch``."""
        total = self.gpu.total_bytes
        free = total if self.free_bytes is None else min(total, self.free_bytes)
        return max(0, free - self.outside_torch)

    @property
    def common_host_bytes(self) -> int:
        """Memory of a node as machines with these cards commonly have: what is assumed where ``host_bytes`` is None."""
        return self.gpus_per_node * self.gpu.host_bytes

    @property
    def host_words(self) -> str:
        """What the host has, and how that is known: ``64.0 GiB stated``, ``64.0 GiB is common with 1x RTX 4090``."""
        if self.host_bytes is None:
            return f"{gib(self.common_host_bytes)} is common with {self.title}"
        return f"{gib(self.host_bytes)} {'detected' if self.source == DETECTED else 'stated'}"

    @property
    def spec(self) -> str:
        """The text that ``parse_hardware`` reads back: ``2n8x h100-80gb-sxm host=1TiB``."""
        nodes = f"{self.nodes}n" if self.nodes > 1 else ""
        host = f" host={size_text(self.host_bytes)}" if self.host_bytes is not None else ""
        shared = self.free_bytes if (self.free_bytes or 0) < self.gpu.total_bytes else None
        free = f" free={size_text(shared)}" if shared else ""
        link = f" link={self.link}" if self.link is not None else ""
        net = f" net={self.network_bytes_per_s * 8 / 1e9:g}Gb/s" if self.network_bytes_per_s is not None else ""
        return f"{nodes}{self.gpus_per_node}x {self.gpu.id}{host}{free}{link}{net}"

    @property
    def title(self) -> str:
        """For people: ``8x A100-80GB SXM``, ``2 nodes of 8x H100-80GB SXM``."""
        nodes = f"{self.nodes} nodes of " if self.nodes > 1 else ""
        return f"{nodes}{self.gpus_per_node}x {self.gpu.title}"


def size_text(size: int) -> str:
    """Bytes in the largest unit that loses none: ``1TiB``, ``2TB``, ``1000B``."""
    for unit, factor in UNITS.items():
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    raise ValueError(f"no size: {size}")
