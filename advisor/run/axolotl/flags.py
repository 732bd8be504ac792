"""Switches of the YAML, as rules ask for them."""

from collections.abc import Mapping
from typing import Any

from advisor.run import Run
from advisor.run.axolotl.reader import TRUE
from advisor.util import is_list


def is_on(run: Run, key: str) -> bool:
    """Whether the YAML says true, in any of the ways that axolotl's schema takes for it."""
    return str(run.config.get(key)).lower() in TRUE


def plugin_names(values: Mapping[str, Any]) -> set[str]:
    """The class names of what ``plugins:`` lists."""
    listed = values.get("plugins")
    return {str(name).rsplit(".", 1)[-1] for name in listed} if is_list(listed) else set()
