"""The settings of a folder: ``advisor.toml``, or a table of ``pyproject.toml``."""

from advisor.settings.settings import ENVIRONMENT, NARROW, READERS, RULES, Settings, load_settings, settings_in_file

__all__ = ["ENVIRONMENT", "NARROW", "READERS", "RULES", "Settings", "load_settings", "settings_in_file"]
