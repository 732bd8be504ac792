"""Targets of LoRA that PEFT moves from linear layers, which experts once were, to the experts' stacked parameters.

peft/utils/transformers_weight_conversion.py, _convert_peft_config_moe@0.20.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from advisor.record import replace
from advisor.util import is_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.models import Architecture
    from advisor.run import Lora, Run
    from advisor.run.stack import Stack

MOVES_NAMES = "0.19.0"
"""PEFT that first moves lists of names: 0.18.1 has no such module."""
MOVES_PATTERNS = "0.20.0"
"""PEFT that first resolves a regular expression or ``all-linear``: _resolve_string_target_modules@0.20.0."""
FUSED, DOWN, ROUTER = "gate_up_proj", "down_proj", "gate.weight"


def moved(lora: Lora, model: Architecture | None, stack: Stack) -> Lora:
    """The adapter as PEFT converts it: on stacks, the fused one of twice the rank, and on no module of those names.

    Dense layers and shared experts call their linear layers by the same names, and so lose their adapters. Where PEFT
    raises, for one of two fused targets without the other, the adapter stays as it is written.
    """
    table = moves(model, stack)
    if not table or model is None:
        return lora
    names = resolved(lora, model, stack, table)
    found = {old: new for old, new in table.items() if any(leaf(name) == old for name in names)}
    if not found or missing(lora, model, stack):
        return lora
    parameters = dict.fromkeys([*lora.target_parameters, *found.values()])
    fused = {FUSED: 2 * lora.rank} if FUSED in found.values() else {}
    return replace(
        lora,
        targets=tuple(name for name in names if leaf(name) not in found),
        targets_pattern=False,
        target_linear=False,
        target_parameters=tuple(parameters),
        rank_pattern={**lora.rank_pattern, **{k: n for k, n in fused.items() if k not in lora.rank_pattern}},
    )


def missing(lora: Lora, model: Architecture | None, stack: Stack) -> tuple[str, ...]:
    """Which of the two fused projections is not targeted while the other is; PEFT raises a ValueError."""
    table = moves(model, stack)
    if not table or model is None:
        return ()
    fused = [old for old, new in table.items() if new == FUSED]
    names = {leaf(name) for name in resolved(lora, model, stack, table)}
    absent = tuple(old for old in fused if old not in names)
    return absent if len(absent) < len(fused) else ()


def moves(model: Architecture | None, stack: Stack) -> dict[str, str]:
    """What PEFT calls the parameters that were linear layers, by their old names; nothing where it moves none."""
    both = stack.at_least("transformers", "5.0.0") and stack.at_least("peft", MOVES_NAMES)
    if model is None or not both or not model.family.expert_targets:
        return {}
    gate, up, down = model.family.expert_targets
    return {"gate": ROUTER, gate: FUSED, up: FUSED, down: DOWN}


def resolved(lora: Lora, model: Architecture, stack: Stack, table: dict[str, str]) -> tuple[str, ...]:
    """The names that PEFT gets from axolotl, or makes of a pattern."""
    if lora.target_linear:
        # axolotl/loaders/adapter.py, find_all_linear_names@0.19.0.
        listed = () if lora.targets_pattern and not lora.targets else lora.targets
        return tuple(dict.fromkeys([*listed, *linear_names(model)]))
    if not lora.targets_pattern:
        return lora.targets
    if not lora.targets or not stack.at_least("peft", MOVES_PATTERNS):
        return ()
    if lora.targets[0].lower() == "all-linear":
        return tuple(dict.fromkeys([*linear_names(model), *table]))
    try:
        return tuple(dict.fromkeys(matched(re.compile(lora.targets[0]), model, table)))
    except re.error:
        return ()


def linear_names(model: Architecture) -> Iterator[str]:
    """The last part of every linear layer's name but the head's."""
    return (leaf(tensor.module) for tensor in model.tensors if tensor.linear and tensor.kind != "head")


def all_linear_by_name(run: Run, model: Architecture) -> list[str]:
    """What ``lora_target_linear`` adapts, as ``lora_target_modules`` names it: what is named already, and the rest."""
    given: Any = run.config.get("lora_target_modules") or []
    listed = [given] if isinstance(given, str) else list(map(str, given))
    routers = {leaf(tensor.module) for tensor in model.tensors if tensor.kind == "router"}
    unwrapped = routers if model.family.router_returns_choice else set[str]()
    return [name for name in dict.fromkeys([*listed, *linear_names(model)]) if name not in unwrapped]


def left_by_name(run: Run) -> list[str]:
    """What is targeted by name less what PEFT moves to the experts' stacks; of a pattern nothing."""
    table = moves(run.model, run.stack)
    given = run.config.get("lora_target_modules")
    listed = list(map(str, given)) if is_list(given) else []
    linear = all_linear_by_name(run, run.model) if run.model is not None else []
    names = linear if run.config.get("lora_target_linear") else listed
    return [name for name in names if leaf(name) not in table]


def taken_from_layers(run: Run) -> list[str]:
    """Linear layers outside of the experts that lose the adapters they are named for to the experts' stacks, sorted."""
    model, lora = run.model, run.lora
    if model is None or lora is None or run.config.get("lora_target_parameters"):
        return []
    found = {old for old, new in moves(model, run.stack).items() if new in lora.target_parameters}
    modules = {tensor.module for tensor in model.tensors}
    return sorted({module.rpartition("*.")[2] for module in modules if leaf(module) in found})


def matched(pattern: re.Pattern[str], model: Architecture, table: dict[str, str]) -> Iterator[str]:
    """The last parts of what a pattern matches: modules, parameters, and experts' linears as they were called."""
    for tensor in model.tensors:
        container, _, name = tensor.name.rpartition(".")
        olds = [f"{container}.{old}" for old, new in table.items() if new == name]
        for path in (tensor.name, container, *olds):
            if any(pattern.fullmatch(path.replace("*", str(index))) for index in layers(path, model)):
                yield leaf(path)


def layers(path: str, model: Architecture) -> range:
    """The indices that ``*`` may stand for."""
    return range(sum(block.count for block in model.blocks) if "*" in path else 1)


def names_in_layers(model: Architecture) -> set[str]:
    """What the linear layers of the decoder's blocks are called, without what they are in."""
    return {leaf(one.path) for block in model.blocks for one in block.linears}


def leaf(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]
