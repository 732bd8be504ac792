"""Machines of AWS, Google Cloud and Azure by name (``instances.json``): their cards and memory."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from advisor.hardware.catalogue import catalogue
from advisor.hardware.gpu import GIB, Gpu
from advisor.record import record


@record
class _Instance:
    """One machine. ``host_bytes`` is its memory; ``source`` the public table that it was read in."""

    name: str
    gpu: Gpu
    gpus: int
    host_bytes: int
    source: str


@lru_cache(maxsize=1)
def written() -> Mapping[str, Any]:
    """``instances.json``."""
    return json.loads(Path(__file__).with_name("instances.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of all machines, by what is left of their names once case, dashes and Azure's ``Standard_`` are."""
    return {spelling(row["name"]): row for row in written()["instances"]}


@lru_cache(maxsize=1)
def instances() -> Mapping[str, _Instance]:
    """All machines, by the same names."""
    return {name: _read_instance(row) for name, row in rows().items()}


def _read_instance(row: Mapping[str, Any]) -> _Instance:
    """One machine."""
    gpu, source = catalogue().gpus[row["gpu"]], written()["sources"][row["source"]]
    return _Instance(row["name"], gpu, row["gpus"], row["host_gib"] * GIB, source)


def spelling(name: str) -> str:
    """A name without what people write in different ways."""
    return name.lower().strip().replace("_", "-").replace(" ", "-").removeprefix("standard-")


def find_instance(name: str) -> _Instance | None:
    """The machine of that name, or None."""
    row = rows().get(spelling(name))
    return _read_instance(row) if row is not None else None


def near_instances(name: str) -> list[str]:
    """Up to three machines whose names look like ``name``, best first."""
    import difflib

    near = difflib.get_close_matches(spelling(name), rows(), n=3, cutoff=0.75)
    return [rows()[key]["name"] for key in near]
