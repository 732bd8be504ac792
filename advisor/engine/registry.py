"""Finds rules by folder: one file, one ``rule``; and the order of the flowchart, which is data."""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from advisor.engine.bytecode import bytecode
from advisor.engine.rule import Rule, Stage
from advisor.errors import InputError
from advisor.record import replace
from advisor.run import Run
from advisor.util import toml_library

if TYPE_CHECKING:
    from advisor.engine.pack import Pack

STAGES: tuple[Stage, ...] = ("lint", "fit", "speed")


@lru_cache(maxsize=1)
def built_in_folder() -> Path:
    """Where the advisor's own rules lie, in a wheel or a checkout."""
    return Path(next(iter(importlib.import_module("advisor.rules").__path__)))


@lru_cache(maxsize=8)
def built_in_rules(stage: Stage) -> Mapping[str, Rule]:
    """The advisor's own rules of one stage, by id."""
    folder = os.path.join(built_in_folder(), stage, "")
    return {rule.id: rule for rule in (load_rule(path, stage) for path in _own_code() if path.startswith(folder))}


@lru_cache(maxsize=1)
def _own_code() -> Mapping[str, CodeType | None]:
    return bytecode(built_in_folder(), STAGES)


def organisation_rules(packs: Iterable["Pack"]) -> Mapping[str, Rule]:
    """The rules of packs, flat or in folders by stage; ``InputError`` for a name twice, or a file that is no rule."""
    found: dict[str, Rule] = {}
    for pack in packs:
        add(found, pack)
        for stage in STAGES:
            add(found, pack, stage)
    return found


def add(found: dict[str, Rule], pack: "Pack", stage: Stage | None = None) -> None:
    """The rules of one more folder, none of which may replace another. What they raise is theirs."""
    for path in pack.rules(stage or ""):
        rule = load_rule(str(path), stage, pack)
        if rule.id in found or is_built_in(rule.id):
            other = "another of yours" if rule.id in found else "one of the advisor's own"
            raise InputError(f"the rule `{rule.id}` has the name of {other}", str(path), remedy="rename it")
        found[rule.id] = guarded(rule, str(path))


@lru_cache(maxsize=1024)
def is_built_in(rule: str) -> bool:
    """Whether one of the advisor's own rules has this id, which is its file's name."""
    return any((built_in_folder() / stage / f"{rule.replace('-', '_')}.py").is_file() for stage in STAGES)


def load_rule(path: str, stage: Stage | None = None, pack: "Pack | None" = None) -> Rule:
    """The ``rule`` of one file, whose id is the file's name with dashes; without a ``pack`` it is one of ours."""
    rule = getattr(executed(path, pack), "rule", None)
    if not isinstance(rule, Rule):
        raise InputError("a rule file must define `rule = Rule(...)`", path, remedy="see CONTRIBUTING.md")
    if rule.id != os.path.basename(path).removesuffix(".py").replace("_", "-"):
        raise InputError(f"the rule's id `{rule.id}` is not the file's name", path, remedy="rename one of them")
    if stage is not None and rule.stage != stage:
        raise InputError(f"a `{rule.stage}` rule is in the folder `{stage}`", path, remedy="move the file")
    if pack is not None and rule.begins_with_variation:
        message = "a variation stands before the first full example that fires"
        raise InputError(message, path, remedy="begin with an `Example` in full")
    return rule


def executed(path: str, pack: "Pack | None" = None) -> ModuleType:
    """The module of a rule file; what goes wrong inside it is reported with its file."""
    try:
        return _own_module(path) if pack is None else pack.module(Path(path))
    except Exception as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        raise InputError(f"{type(error).__name__}: {error}", path, line, remedy="fix the rule file") from error


def _own_module(path: str) -> ModuleType:
    """The module of one of the advisor's own rules; without a spec, which costs as much as running the file."""
    name = f"advisor_rule_{path}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = path
        exec(_own_code().get(path) or SourceFileLoader(name, path).get_code(name) or "", vars(module))
        sys.modules[name] = module
    return sys.modules[name]


Tiers = tuple[tuple[str, tuple[str, ...]], ...]
"""What sorts of run there are, in order: the name of each, and the ids of the rules that come with it."""
CUTS = ("lora", "qlora", "offload-optimizer", "shorter-sequences")
"""Before these rules a flowchart that is a plain list is cut into tiers, as it was written for version 0.1."""


@lru_cache(maxsize=1)
def flowcharts() -> Mapping[str, Tiers]:
    """The flowcharts by name, from ``flowchart.toml``."""
    text = (built_in_folder() / "flowchart.toml").read_text(encoding="utf-8")
    return {name: tiers(value) for name, value in toml_library().loads(text).items()}


def tiers(value: Any) -> Tiers:
    """A flowchart as TOML has it: tables with ``name`` and ``steps``, or one list of steps."""
    if value and isinstance(value[0], Mapping):
        return tuple((str(tier["name"]), tuple(tier["steps"])) for tier in value)
    found: list[tuple[str, tuple[str, ...]]] = []
    steps: list[str] = []
    for step in value:
        if step in CUTS and steps:
            found.append((steps[0], tuple(steps)))
            steps = []
        steps.append(step)
    return (*found, (steps[0], tuple(steps))) if steps else tuple(found)


def flowchart(name: str, own: Mapping[str, Tiers] | None = None) -> Tiers:
    """The tiers of one flowchart. An unknown name is an ``InputError`` that lists the others."""
    known = {**flowcharts(), **(own or {})}
    if name not in known:
        raise InputError(f"unknown flowchart `{name}`", remedy=f"choose one of {', '.join(known)}")
    return known[name]


Found = TypeVar("Found")


def guarded(rule: Rule, file: str) -> Rule:
    """The rule, with what its functions raise as an ``InputError`` at the line of ``file``."""

    def guard(function: Callable[[Run], Found]) -> Callable[[Run], Found]:
        def call(run: Run) -> Found:
            try:
                return function(run)
            except InputError:
                raise
            except Exception as error:
                raise fault(rule, file, error) from error

        return call

    safe = guard(rule.safe) if callable(rule.safe) else rule.safe
    finds = guard(lambda run: list(rule.finds(run)))
    return replace(rule, when=guard(rule.when), edits=guard(rule.edits), finds=finds, safe=safe)


def fault(rule: Rule, file: str, error: Exception) -> InputError:
    """What went wrong, at the last line of the rule's own file."""
    from traceback import extract_tb

    lines = [frame.lineno or 0 for frame in extract_tb(error.__traceback__) if frame.filename == file]
    message = f"the rule `{rule.id}` failed: {type(error).__name__}: {error}"
    return InputError(message, file, lines[-1] if lines else 0, remedy=f"fix it, or pass --ignore {rule.id}")
