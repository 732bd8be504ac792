"""The step time without a source: the constants that its figures moved, chosen again from the other sources' figures.

``left_out.json`` has the values by source; ``python -m tests.accuracy.choosing`` writes it. Where it starts, and where
a constant stays that no other source speaks of, is the prior: from papers, datasheets and counts alone.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from advisor.record import record
from advisor.speed.constants import SHIPPED, Constants

TABLE = Path(__file__).with_name("left_out.json")
LAYER = "aten operations of transformers' LlamaDecoderLayer (5.16.1), views included: 80 forward, 145 backward"
GPTQ = "auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py@0.7.1"
PEFT = "peft/tuners/lora/layer.py, counted without dropout: 14 forward, 18 backward, over two widths and passes"
AD102 = "cuBLAS on L20, the chip of RTX 4090: 114.6 of 119.5 TFLOPS (DefTruth/CUDA-Learn-Notes, kernels/hgemm)"


@record
class _Prior:
    """What a constant would be before any published figure, and why."""

    value: float
    source: str
    spread: float = 2.0
    """The factor that it may well be off by: small where it was measured, a factor of two where it was counted."""


PRIORS: Mapping[str, _Prior] = {
    "gemm_share geforce": _Prior(0.95, AD102, 1.1),
    "gemm_share hopper": _Prior(0.75, "as other cards", 1.1),
    "gemm_share other": _Prior(0.80, "cuBLAS on A100: 250 of 312 TFLOPS", 1.1),
    "half_rate_width": _Prior(2.0, "a product has half as many operations a byte as its width"),
    "flash_1_share": _Prior(0.59, "arXiv:2307.08691, abstract: 25 to 40 %; of 0.55 for the second version"),
    "large_cache": _Prior(1.0, "no effect"),
    "launch_seconds": _Prior(10e-6, "5 us a launch, as much again for Python"),
    "forward_launches": _Prior(80, LAYER),
    "backward_launches": _Prior(0.9, f"{LAYER}, without Python"),
    "dequantize_launches": _Prior(14, f"{GPTQ}: 20; bitsandbytes, dequantize_4bit: 8"),
    "zero3_layer_seconds": _Prior(5e-3, "13 modules with 6 hooks, 9 weights gathered 3 times, each 50 us"),
    "fsdp_layer_seconds": _Prior(0.2e-3, "four hooks of a layer at 50 us"),
    "dequantize_cost gptq": _Prior(4.4, f"{GPTQ}: 16.5 bytes an element, in two passes of three"),
    "adapter_bytes": _Prior(6, PEFT),
    "pcie_share": _Prior(0.5, "into host memory and out of it"),
    "slow_pcie_bytes_per_second": _Prior(2e9, "half of four lanes of PCIe 3"),
    "host_copy_share": _Prior(0.375, "PCIe 4 at 24 of 32 GB/s, an uplink of DGX A100 for two GPUs"),
    "desktop_share": _Prior(0.6, "cores of 5 GHz against 3 GHz"),
}


def moved_by(repository: str) -> list[str]:
    """The names of the constants that a repository's figures moved."""
    return [name for name, one in SHIPPED.named().items() if repository in one.chosen_from]


def without(repository: str) -> Constants:
    """The constants without a repository's figures."""
    return SHIPPED.having(chosen_again().get(repository, {}))


@cache
def chosen_again() -> Mapping[str, Mapping[str, float]]:
    """Source -> constant -> value, from the other sources."""
    return json.loads(TABLE.read_text(encoding="utf-8"))
