# pyright: basic
"""Runs under activation offloading: the keys of axolotl's config, and how the model is trained."""

from dataclasses import dataclass
from typing import Any

import torch

from .trace import Setting

LAYERS, TOKENS = 8, 256
REENTRANT = {"gradient_checkpointing_kwargs": {"use_reentrant": True}}
NON_REENTRANT = {"gradient_checkpointing_kwargs": {"use_reentrant": False}}


@dataclass(frozen=True)
class Case:
    """A run."""

    setting: Setting
    keys: dict[str, Any]


LORA = {"adapter": "lora", "activation_offloading": True}
ALL = Setting(adapter="all-linear")
CASES = {
    "lora": Case(ALL, {**LORA, **REENTRANT}),
    "lora on queries": Case(Setting(adapter=("q_proj", "v_proj")), {**LORA, **REENTRANT}),
    "lora in bf16": Case(Setting(adapter="all-linear", autocast=False, adapter_fp32=False), {**LORA, **REENTRANT}),
    "lora, non-reentrant": Case(ALL, {**LORA, **NON_REENTRANT}),
    "lora, legacy": Case(ALL, {**LORA, **REENTRANT, "activation_offloading": "legacy"}),
    "full": Case(Setting(weights=torch.float32), {**REENTRANT, "activation_offloading": True}),
    "full in bf16": Case(Setting(autocast=False), {**REENTRANT, "activation_offloading": True}),
    "full, legacy": Case(Setting(weights=torch.float32), {**REENTRANT, "activation_offloading": "legacy"}),
}
