"""axolotl's plugin: ``plugins: [advisor.plugins.axolotl.AdvisorPlugin]`` in the YAML."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``AdvisorPlugin``, imported when axolotl asks for it: it needs axolotl's own base class."""
    if name == "AdvisorPlugin":
        from .plugin import AdvisorPlugin

        return AdvisorPlugin
    raise AttributeError(name)
