"""Which modules carry a LoRA adapter, and of which rank: by a module's full path, ``*`` for the layer's index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.run import Lora
from advisor.run.axolotl.checkpointing import TIED_BY_PEFT

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import LinearShape, WeightShape
    from advisor.run import Lora, Run


def wraps(lora: Lora, module: str) -> bool:
    """Whether LoRA wraps a linear layer: peft/tuners/tuners_utils.py, check_target_module_exists@0.20.0."""
    if lora.layers and "*" not in module and module not in lora.targets and not _in_layers(lora, module):
        return False
    if everywhere(lora):
        return True
    if lora.targets_pattern:
        return _matches_pattern(lora.targets[0], module)
    return named(lora.targets, module)


def _in_layers(lora: Lora, module: str) -> bool:
    """Whether a module belongs to one of the layers that ``peft_layers_to_transform`` names: by its first number."""
    lists = lora.layer_lists or ("[^.]*",)
    try:
        found = next((match for name in lists if (match := re.match(rf".*?\.(?:{name})\.(\d+)\.", module))), None)
    except re.error:
        return False
    return found is not None and int(found[found.lastindex or 0]) in lora.layers


def everywhere(lora: Lora) -> bool:
    """Whether every linear layer is wrapped, without being named."""
    return lora.target_linear or "all-linear" in lora.targets


@lru_cache(maxsize=4096)
def named(names: tuple[str, ...], module: str) -> bool:
    """Whether a module is one of ``names``, in full or by its last parts."""
    return any(module == name or module.endswith("." + name) for name in names)


def _matches_pattern(pattern: str, module: str) -> bool:
    """Whether a regular expression matches the whole module name; ``*`` stands for layer 0."""
    try:
        return re.fullmatch(pattern, module.replace("*", "0")) is not None
    except re.error:
        return False


def layers_named(lora: Lora) -> bool:
    """Whether layers are named by number, so that they may differ."""
    return bool(lora.layers) or (not everywhere(lora) and _has_numbers(lora.targets))


@lru_cache(maxsize=64)
def _has_numbers(targets: tuple[str, ...]) -> bool:
    """Whether a digit is in any of the targets."""
    return any(character.isdigit() for target in targets for character in target)


def layers_wrapped(lora: Lora, module: str, count: int) -> int:
    """In how many of ``count`` layers LoRA wraps a module that is written with ``*`` for the layer's index.

    Layers of one kind are taken for the first ``count`` of the model.
    """
    if "*" not in module or not layers_named(lora):
        return count if wraps(lora, module) else 0
    return sum(wraps(lora, module.replace("*", str(index))) for index in range(count))


def rank_at(lora: Lora, module: str) -> int:
    """The rank of one module: ``lora_rank_pattern`` before ``lora_r``."""
    return next((rank for name, rank in lora.rank_pattern.items() if module.endswith(name)), lora.rank)


def is_target(lora: Lora, linear: LinearShape) -> bool:
    """Whether the linear carries an adapter; a router only where it is named."""
    return wraps(lora, linear.path) and not (linear.kind == "router" and everywhere(lora))


def stacked(run: Run) -> bool:
    """Whether the experts of a layer are one tensor each way, as transformers 5 has them."""
    return run.stack.at_least("transformers", "5.0.0") and not run.linear_experts


def expert_paths(model: Architecture, tensor: WeightShape) -> Iterator[str]:
    """The first expert's linear layers, by the stack that leads back to the residual stream."""
    stack, _, name = tensor.name.removesuffix(".weight").rpartition(".")
    if name.startswith("down") and len(tensor.shape) == 3:
        yield from (f"{stack}.{linear}" for linear in model.family.expert_linears)


def adapts_experts(run: Run) -> bool:
    """Whether LoRA wraps linear layers of experts that are modules."""
    model, lora = run.model, run.lora
    if model is None or lora is None or stacked(run):
        return False
    experts = (tensor for tensor in model.tensors if tensor.kind == "experts")
    return any(wraps(lora, path) for tensor in experts for path in expert_paths(model, tensor))


def ties_ends(run: Run, model: Architecture) -> bool:
    """Whether PEFT trains one copy for embedding and head (tuners_utils.py, ``_check_tied_modules``@0.20.0)."""
    if run.lora is None or not run.lora.ensure_tying or not model.tied:
        return False
    return any(name.rpartition(".")[2] in TIED_BY_PEFT for name in run.lora.modules_to_save)
