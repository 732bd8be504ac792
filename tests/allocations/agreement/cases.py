# pyright: basic
"""All settings on which tape and ledger are compared, by name."""

from collections.abc import Mapping
from typing import Any

from . import checkpointed, dense, experts, images, losses, replicas
from .models import BASE

ALONE, EIGHT = "1x a100-80gb", "8x a100-80gb"
KINDS = ((dense, ALONE), (losses, ALONE), (images, ALONE), (experts, ALONE), (checkpointed, ALONE), (replicas, EIGHT))
CASES: dict[str, tuple[Mapping[str, Any], str]] = {
    name: ({**BASE, **keys}, gpus) for module, gpus in KINDS for name, keys in module.SETTINGS.items()
}
"""The YAML's keys, and the GPUs."""
