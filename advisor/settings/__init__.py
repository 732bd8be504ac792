"""The settings of a folder: ``advisor.toml``, or a table of ``pyproject.toml``."""

from advisor.settings.settings import ENVIRONMENT, READERS, STACK, Settings, load_settings

__all__ = ["ENVIRONMENT", "READERS", "STACK", "Settings", "load_settings"]
