"""axolotl's own schema classes -> the table of its keys. Runs with an installed axolotl, off the fast path."""

import ast
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

from advisor.plugins.axolotl.settings import AdvisorArgs

from advisor.schemas.kinds import kinds_of
from tests.tables.asking import Asked, Row, Rows
from tests.tables.probing import Prober

# What no probe finds: successors inside nested models (axolotl/utils/schemas/utils.py:36-77@0.19.0), where the message
# names a mapping (utils/schemas/deprecated.py:36-43), and where it needs a package (utils/schemas/validation.py:1785).
BY_HAND: dict[str, dict[str, Row]] = {
    "SFTDataset": {
        "message_field_role": {"effect": "moved", "to": {"message_property_mappings.role": None}},
        "message_field_content": {"effect": "moved", "to": {"message_property_mappings.content": None}},
    },
    "AxolotlInputConfig": {
        "sequence_parallel_degree": {"effect": "moved", "to": {"context_parallel_size": None}},
        "rope_scaling": {"effect": "refused", "to": {"overrides_of_model_config.rope_scaling": None}},
    },
}
BOUNDS = ("ge", "gt", "le", "lt", "min_length")
OWN_PLUGIN = "advisor.plugins.axolotl.AdvisorPlugin"


def axolotl_table() -> Row:
    """Every key, level by level, and what each built-in plugin adds."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "AXOLOTL_DO_NOT_TRACK": "1", "CUDA_VISIBLE_DEVICES": ""}
    config: Any = importlib.import_module("axolotl.utils.schemas.config")
    logging.getLogger("axolotl").propagate = False
    root: Any = config.AxolotlInputConfig
    package = Path(importlib.import_module("axolotl").__path__[0])
    models: dict[str, Any] = {}
    levels: dict[str, Row] = {}
    levels[root.__name__] = level_of(levels, models, root)
    arguments = {**dict(plugins_of(package / "integrations")), OWN_PLUGIN: AdvisorArgs}
    plugins = {name: rows_of(levels, models, model, {}) for name, model in arguments.items()}
    prober = Prober(config.AxolotlConfigWCapabilities, package)
    top = levels[root.__name__]["keys"]
    for name, model in models.items():
        Asked(model).loosen(levels[name]["keys"])
    prober.settle(top, None)
    for name, rows in plugins.items():
        prober.settle(rows, arguments[name])
    top |= prober.removed(known={name for rows in (top, *plugins.values()) for name in rows})
    for level, rows in BY_HAND.items():
        for key, deprecated in rows.items():
            levels[level]["keys"][key]["deprecated"] = deprecated
    return {
        "version": importlib.metadata.version("axolotl"),
        "root": root.__name__,
        "levels": levels,
        "plugins": plugins,
    }


def level_of(levels: dict[str, Row], models: dict[str, Any], model: Any) -> Row:
    """The keys of a model. Models inside it go to ``models``, and what they hold to ``levels``."""
    keys = rows_of(levels, models, model, model.model_config)
    required = sorted(name for name, field in model.model_fields.items() if field.is_required())
    needed = {"required": required} if required else {}
    return {"forbids": model.model_config.get("extra") == "forbid", **needed, "keys": keys}


def filed(levels: dict[str, Row], models: dict[str, Any], model: Any) -> str:
    """The name under which the keys of a nested model are filed."""
    name: str = model.__name__
    if name not in models:
        models[name] = model
        levels[name] = level_of(levels, models, model)
    return name


def rows_of(levels: dict[str, Row], models: dict[str, Any], model: Any, settings: Any) -> Rows:
    """A row for each name under which a field of ``model`` may be given."""
    loose = {
        field
        for validator in model.__pydantic_decorators__.field_validators.values()
        if validator.info.mode != "after"
        for field in validator.info.fields
    }
    rows: Rows = {}
    for name, field in model.model_fields.items():
        kinds = kinds_of(field.annotation, partial(filed, levels, models))
        if name in loose:
            kinds = [*(kind for kind in kinds if isinstance(kind, dict)), "any"]
        for spelling in spellings(name, field, settings):
            rows[spelling] = {"kinds": kinds, **bounds_of(field)}
    return rows


def bounds_of(field: Any) -> Row:
    """What a number, or the length of a list, may not go below or above."""
    lists = [part for choice in get_args(field.annotation) for part in getattr(choice, "__metadata__", ())]
    parts = [*field.metadata, *lists]
    return {name: getattr(part, name) for part in parts for name in BOUNDS if getattr(part, name, None) is not None}


def spellings(name: str, field: Any, settings: Any) -> list[str]:
    """The field's aliases, and its own name where that is taken as well."""
    alias = field.validation_alias or field.alias
    given = [str(choice) for choice in getattr(alias, "choices", [alias] if alias else [])]
    by_name = not given or settings.get("populate_by_name") or settings.get("validate_by_name")
    return [*([name] if by_name else []), *(choice for choice in given if choice != name or not by_name)]


def plugins_of(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each built-in plugin as ``plugins:`` names it, and the model of the keys that it adds.

    Read from the source, since importing a plugin imports what it runs with.
    """
    for file in sorted(folder.glob("*/*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            arguments = input_args(node)
            if isinstance(node, ast.ClassDef) and arguments:
                package = f"{folder.parent.name}.{folder.name}.{file.parent.name}"
                module = loaded(f"{package}.args", file.with_name("args.py"))
                yield f"{package}.{node.name}", getattr(module, arguments)


def input_args(node: ast.AST) -> str | None:
    """The class that a plugin's ``get_input_args`` names."""
    for method in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
        if isinstance(method, ast.FunctionDef) and method.name == "get_input_args":
            for part in ast.walk(method):
                if isinstance(part, ast.Return) and isinstance(part.value, ast.Constant):
                    return str(part.value.value).rsplit(".", 1)[-1]
    return None


def loaded(name: str, file: Path) -> Any:
    """A module of its own, without the package around it."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
