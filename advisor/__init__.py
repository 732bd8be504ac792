"""Reads an axolotl config before the launch.

Will it fit, what is wrong with it, and the smallest patch that fixes it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from advisor.about import VERSION
from advisor.engine.example import Example, but, only, without
from advisor.engine.rule import Hit, Rule

if TYPE_CHECKING:
    from advisor.api import check, check_text, estimate, step_time
    from advisor.documents import Change, Remove, Rename, Set
    from advisor.engine.locations import json_hit
    from advisor.memory import Estimate
    from advisor.run import Run
    from advisor.run.edits import RunEdits
    from advisor.util import GIB, gib, is_list, is_mapping

__version__ = VERSION
__all__ = [
    "GIB",
    "Change",
    "Estimate",
    "Example",
    "Hit",
    "Remove",
    "Rename",
    "Rule",
    "Run",
    "RunEdits",
    "Set",
    "__version__",
    "but",
    "check",
    "check_text",
    "estimate",
    "gib",
    "is_list",
    "is_mapping",
    "json_hit",
    "only",
    "step_time",
    "without",
]
HOMES = {
    "Change": "documents",
    "Estimate": "memory",
    "GIB": "util",
    "Remove": "documents",
    "Rename": "documents",
    "Run": "run",
    "RunEdits": "run.edits",
    "Set": "documents",
    "check": "api",
    "check_text": "api",
    "estimate": "api",
    "gib": "util",
    "is_list": "util",
    "is_mapping": "util",
    "json_hit": "engine.locations",
    "step_time": "api",
}
"""Names that cost an import are loaded on first use."""


def __getattr__(name: str) -> Any:
    """A public name, from the module that holds it."""
    if name in HOMES:
        globals()[name] = getattr(import_module(f"advisor.{HOMES[name]}"), name)
        return globals()[name]
    raise AttributeError(name)
