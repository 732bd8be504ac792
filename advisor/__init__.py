"""Reads an axolotl config before the launch.

Will it fit, what is wrong with it, and the smallest patch that mends it.
"""

from typing import TYPE_CHECKING, Any

from advisor.engine.rule import Example, Hit, Rule

if TYPE_CHECKING:
    from advisor.api import check, estimate
    from advisor.run import Run
    from advisor.run.edits import RunEdits

__version__ = "0.1.0"
__all__ = ["Example", "Hit", "Rule", "Run", "RunEdits", "__version__", "check", "estimate"]


def __getattr__(name: str) -> Any:
    """What costs an import is loaded on first use."""
    if name in {"check", "estimate"}:
        from advisor import api

        return getattr(api, name)
    if name == "Run":
        from advisor.run import Run
    from advisor.run.edits import RunEdits

        return Run
    raise AttributeError(name)
