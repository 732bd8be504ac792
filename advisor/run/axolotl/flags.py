"""Switches of the YAML, as rules ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from advisor.util import is_list

if TYPE_CHECKING:
    from advisor.run import Run


def is_on(run: Run, key: str) -> bool:
    """``run.is_on``, for rules that were written before it was a method."""
    return run.is_on(key)


def plugin_names(values: Mapping[str, Any]) -> set[str]:
    """The class names of what ``plugins:`` lists."""
    listed = values.get("plugins")
    return {str(name).rsplit(".", 1)[-1] for name in listed} if is_list(listed) else set()
