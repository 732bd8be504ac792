"""DeepSpeed's own config class -> the table of its keys, and of which ``"auto"`` the trainer replaces."""

import importlib
import importlib.metadata
import logging
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, cast

from advisor.schemas.kinds import SIMPLE, kinds_of, levels_in
from tests.tables.filling import auto

Row = dict[str, Any]
Rows = dict[str, Row]
# Sections that DeepSpeed reads key by key, all of them whatever they say; it ignores what else stands there.
PLAIN_SECTIONS = ("activation_checkpointing", "aio", "checkpoint", "data_types", "flops_profiler")
# Read by accelerate, and under a process group (accelerate/utils/dataclasses.py:1345@1.13.0,
# deepspeed/runtime/config.py:680@0.18.9).
READ_ELSEWHERE = ("msamp", "sequence_parallel_size")
BATCH = {"train_micro_batch_size_per_gpu": 1}
ROOT = "DeepSpeedConfig"


class Seen(dict[str, Any]):
    """A mapping that notes which keys it is asked for, and with which defaults."""

    noted: Rows

    def __init__(self, values: Mapping[str, Any], noted: Rows) -> None:
        super().__init__(values)
        self.noted = noted

    def get(self, key: str, default: Any = None) -> Any:
        self.note(key, default)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.note(str(key))
        return super().__contains__(key)

    def keys(self) -> Any:
        return self

    def note(self, key: str, default: Any = None) -> None:
        """Remembers a key, and the kind of its default."""
        kind = "float" if type(default) in (int, float) else SIMPLE.get(type(default), "any")
        row = self.noted.setdefault(key, {"kinds": ["any"]})
        if kind not in ("any", "null") and row["kinds"] == ["any"]:
            row["kinds"] = [kind]


def deepspeed_table() -> Row:
    """Every key that DeepSpeed reads, level by level; whether a level forbids others; what becomes of ``"auto"``."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    runtime: Any = importlib.import_module("deepspeed.runtime.config")
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    top: Rows = {name: {"kinds": ["any"]} for name in READ_ELSEWHERE}
    runtime.DeepSpeedConfig(Seen(BATCH, top))
    levels: dict[str, Row] = {ROOT: {"forbids": False, "keys": top}}
    for name, row in top.items():
        level = section(runtime, levels, name)
        if level:
            row["kinds"] = [{"level": level}]
    for path in paths(levels, ROOT, ()):
        found = auto(path)
        if found is not None:
            row_at(levels, path)["auto"] = found
    versions = {name: importlib.metadata.version(name) for name in ("deepspeed", "transformers", "accelerate")}
    return {"version": versions.pop("deepspeed"), "beside": versions, "root": ROOT, "levels": levels}


def section(runtime: Any, levels: dict[str, Row], name: str) -> str | None:
    """The level of what may stand below a top-level key: a model that forbids the rest, or a plain mapping."""
    noted: Rows = {}
    try:
        runtime.DeepSpeedConfig({**BATCH, name: Seen({"no_such_key": 1}, noted)})
    except Exception as error:
        title = getattr(error, "title", None)
        model = next((one for one in models(runtime.DeepSpeedConfigModel) if one.__name__ == title), None)
        if model is None:
            return None
        for part in cast("Any", error).errors()[0]["loc"][:-1]:
            model = model.model_fields[part].annotation
        return add_level(levels, model)
    if name not in PLAIN_SECTIONS:
        return None
    levels[name] = {"forbids": False, "keys": {key: row for key, row in noted.items() if key != "no_such_key"}}
    return name


def models(base: Any) -> Iterator[Any]:
    """All models below one."""
    for one in base.__subclasses__():
        yield one
        yield from models(one)


def add_level(levels: dict[str, Row], model: Any) -> str:
    """Notes the keys of a model and of the models inside it."""
    name: str = model.__name__
    if name in levels:
        return name
    rows: Rows = {}
    levels[name] = {"forbids": model.model_config.get("extra") == "forbid", "keys": rows}
    for field_name, field in model.model_fields.items():
        row: Row = {"kinds": kinds_of(field.annotation, partial(add_level, levels))}
        told: Any = field.json_schema_extra or {}
        if told.get("deprecated"):
            new = told.get("new_param", "")
            row["deprecated"] = {"effect": "moved", "to": {new: None}} if " " not in new else {"effect": "kept"}
        rows[field_name] = row
        if field.alias:
            rows[field.alias] = deepcopy(row)
    return name


def paths(levels: dict[str, Row], level: str, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The path of every key below a level."""
    for name, row in levels[level]["keys"].items():
        yield (*above, name)
        for one in levels_in(row["kinds"]):
            yield from paths(levels, one, (*above, name))


def row_at(levels: dict[str, Row], path: tuple[str, ...]) -> Row:
    """The row of a path."""
    level = ROOT
    for name in path[:-1]:
        level = levels_in(levels[level]["keys"][name]["kinds"])[0]
    row: Row = levels[level]["keys"][path[-1]]
    return row
