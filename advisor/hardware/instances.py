"""Machines of AWS, Google Cloud and Azure by name (``instances.json``): their cards and memory."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from advisor.hardware.catalogue import catalogue
from advisor.hardware.gpu import GIB, Gpu
from advisor.record import record


@record
class Instance:
    """One machine. ``host_bytes`` is its memory; ``source`` the public table that it was read in."""

    name: str
    gpu: Gpu
    gpus: int
    host_bytes: int
    source: str


@lru_cache(maxsize=1)
def instances() -> Mapping[str, Instance]:
    """All machines, by what is left of their names once case, dashes and Azure's ``Standard_`` are."""
    data = json.loads(Path(__file__).with_name("instances.json").read_text(encoding="utf-8"))
    return {
        spelling(row["name"]): Instance(
            row["name"],
            catalogue().gpus[row["gpu"]],
            row["gpus"],
            row["host_gib"] * GIB,
            data["sources"][row["source"]],
        )
        for row in data["instances"]
    }


def spelling(name: str) -> str:
    """A name without what people write in different ways."""
    return name.lower().strip().replace("_", "-").replace(" ", "-").removeprefix("standard-")


def find_instance(name: str) -> Instance | None:
    """The machine of that name, or None."""
    return instances().get(spelling(name))


def near_instances(name: str) -> list[str]:
    """Up to three machines whose names look like ``name``, best first."""
    import difflib

    near = difflib.get_close_matches(spelling(name), instances(), n=3, cutoff=0.75)
    return [instances()[key].name for key in near]
