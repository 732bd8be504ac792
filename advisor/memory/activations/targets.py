"""Which linears carry a LoRA adapter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.models.architecture import Linear
    from advisor.run import Lora


def is_target(lora: Lora, linear: Linear) -> bool:
    """Whether the linear carries an adapter: by name, by the pattern that names it, or as one of all
    linears."""
    if lora.target_linear or "all-linear" in lora.targets:
        return linear.kind != "router"
    if lora.targets_pattern:
        name = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(linear.name)}(?![A-Za-z0-9_])")
        return any(name.search(pattern) for pattern in lora.targets)
    return any(target == linear.name or target.endswith(f".{linear.name}") for target in lora.targets)
