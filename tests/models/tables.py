"""The tables of families, found by looking into every module of ``advisor/models/``."""

import pkgutil
from functools import cache
from importlib import import_module

import advisor.models
from advisor.models.family import Family


@cache
def tables() -> dict[str, dict[str, Family]]:
    """The rows of every module that has some, by its name."""
    names = (module.name for module in pkgutil.iter_modules(advisor.models.__path__))
    loaded = {name: import_module(f"advisor.models.{name}") for name in names}
    return {name: module.FAMILIES for name, module in loaded.items() if hasattr(module, "FAMILIES")}
