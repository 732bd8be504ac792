"""Switches of the YAML, as rules ask for them."""

from collections.abc import Mapping
from typing import Any

from advisor.util import is_list


def plugin_names(values: Mapping[str, Any]) -> set[str]:
    """The class names of what ``plugins:`` lists."""
    listed = values.get("plugins")
    return {str(name).rsplit(".", 1)[-1] for name in listed} if is_list(listed) else set()
