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
    from advisor.documents import Remove, Rename, Set
    from advisor.run import Run
    from advisor.run.edits import RunEdits

__version__ = VERSION
__all__ = [
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
    "only",
    "step_time",
    "without",
]
HOMES = {
    "Remove": "documents",
    "Rename": "documents",
    "Run": "run",
    "RunEdits": "run.edits",
    "Set": "documents",
    "check": "api",
    "check_text": "api",
    "estimate": "api",
    "step_time": "api",
}
"""Names that cost an import are loaded on first use."""


def __getattr__(name: str) -> Any:
    """A public name, from the module that holds it."""
    if name in HOMES:
        return getattr(import_module(f"advisor.{HOMES[name]}"), name)
    raise AttributeError(name)
