"""Cards that no catalogue has: known by their memory alone (``24GB``), or as the settings describe them."""

from collections.abc import Mapping
from typing import cast

from advisor.errors import InputError
from advisor.hardware.gpu import GIB, Gpu
from advisor.util import regex

MEMORY = regex(r"(\d{1,4}(?:\.\d+)?)\s*gi?b?(?:\s+card)?")
TORCH_SHARE = 0.96
"""Of the label: torch sees 3 to 5 % less on cards of 8 to 96 GB (gpus.json)."""
LEAST_GB, MOST_GB = 2, 2048
FLAGS, RATES = ("bf16", "fp8"), ("bandwidth_gb_s", "bf16_tflops", "fp16_tflops", "link_gb_s", "pcie_gb_s")
KEYS = ("memory", *FLAGS, *RATES)
"""Of a card in the settings; the meaning is that of ``gpus.json``."""
EXAMPLE = 'write for example `memory = "24GB"`'


def label_of(text: str) -> float | None:
    """The size on the label in GB, if the text is one: ``24GB``, ``24 GiB``, ``24g``."""
    match = MEMORY.fullmatch(text.strip().lower())
    label = float(match[1]) if match else 0.0
    return label if LEAST_GB <= label <= MOST_GB else None


def of_memory(text: str) -> Gpu | None:
    """A card known by its memory alone, which has no time; None where the text is no size."""
    label = label_of(text)
    return None if label is None else _made(f"{label:g}gb", f"{label:g} GB card", label, {})


def assumed_of(gpu: Gpu) -> str:
    """What is assumed of a card known by its memory alone."""
    return (
        f"`{gpu.id}` is the size on a label: torch sees 4 % less; bf16 and FlashAttention are assumed,"
        " and no speed is known"
    )


def own_gpu(name: str, table: Mapping[str, object]) -> Gpu:
    """A card of the settings: its memory, and what else is stated. ``InputError``."""
    label = label_of(str(table.get("memory", "")))
    if label is None:
        wrong = f"is `{table['memory']}`, not a size" if "memory" in table else "is missing"
        raise InputError(f"`gpus.{name}.memory` {wrong}", remedy=EXAMPLE)
    for key in RATES:
        if not 0 < cast("float", table.get(key, 1)) < float("inf"):
            raise InputError(f"`gpus.{name}.{key}` is `{table[key]}`", remedy="write a positive number")
    return _made(name, name, label, table)


def _made(name: str, title: str, label: float, table: Mapping[str, object]) -> Gpu:
    """A card with what is stated; else that of a common one. Without bandwidth or rate it has no time."""
    rates = {key: cast("float", table[key]) for key in RATES if key in table}
    bandwidth = rates.get("bandwidth_gb_s", 0.0)
    bf16, fp8 = bool(table.get("bf16", True)), bool(table.get("fp8", False))
    link = rates.get("link_gb_s")
    return Gpu(
        id=name,
        title=title,
        vendor="NVIDIA",
        compute_capability=(8, 9) if fp8 else (8, 0) if bf16 else (7, 5),
        total_bytes=int(label * TORCH_SHARE * GIB),
        bf16=bf16,
        fp8=fp8,
        bandwidth_bytes_per_s=bandwidth * 1e9 or 1.0,
        bf16_tflops=rates.get("bf16_tflops") if bandwidth and bf16 else None,
        fp16_tflops=rates.get("fp16_tflops", rates.get("bf16_tflops")) if bandwidth else None,
        link_bytes_per_s=link * 1e9 if link else None,
        pcie_bytes_per_s=rates.get("pcie_gb_s", 32.0) * 1e9,
        gpus_per_node=8,
        flash_attention=bf16,
        data_centre=False,
        nominal_gb=int(label),
    )
