"""Switches of the YAML, as rules ask for them."""

from advisor.run import Run
from advisor.run.axolotl.reader import TRUE


def is_on(run: Run, key: str) -> bool:
    """Whether the YAML says true, in any of the ways that axolotl's schema takes for it."""
    return str(run.config.get(key)).lower() in TRUE
