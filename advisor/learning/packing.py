"""Which families do not keep packed samples apart: ``packing.json``."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from advisor.record import record
from advisor.run import Run

PACKING = Path(__file__).with_name("packing.json")


@record(kw_only=True)
class Mixing:
    """A row of ``packing.json``: what carries one sample into the next, and with which kernels."""

    by: str
    kernels: tuple[str, ...]
    source: str


def mixing_of(run: Run) -> Mixing | None:
    """What mixes the samples of a run's packed rows; None where nothing is known to."""
    if run.model is None:
        return None
    row = _rows().get(run.model.model_type)
    return row if row is not None and (not row.kernels or run.attention in row.kernels) else None


@cache
def _rows() -> dict[str, Mixing]:
    table: Any = json.loads(PACKING.read_text(encoding="utf-8"))
    return {one: _row(**row) for row in table["rows"] for one in row["types"]}


def _row(*, types: list[str], kernels: list[str], **row: Any) -> Mixing:
    del types
    return Mixing(kernels=tuple(kernels), **row)
