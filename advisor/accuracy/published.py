"""Published runs with measured memory, and what the advisor says of each.

``published.jsonl`` holds one group of like runs a line, with its public source: figures alone.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from advisor.memory import Estimate, estimate
from advisor.run import Run
from advisor.stack import Stack
from advisor.units import GIB

STACK_KEYS = frozenset(item.name for item in fields(Stack))
READ_OFF_CHARTS = "LK-"
"""Figures of this group were read off pictures: for ranges and out-of-memory, not for error statistics."""


@dataclass(frozen=True, eq=False)
class Published:
    """One measured run. Memory in GiB per GPU; ``smi_gib`` is nvidia-smi's figure less the idle one."""

    id: str
    group: str
    source: str
    gpus: str
    config: Mapping[str, Any]
    deepspeed: Mapping[str, Any] | None
    stack: Mapping[str, Any]
    allocated_gib: float | None = None
    reserved_gib: float | None = None
    smi_gib: float | None = None
    out_of_memory: bool = False
    near_limit: bool = False
    confidence: str = "high"

    @property
    def counts(self) -> bool:
        """Whether it enters error statistics: an allocated peak, of a card with room, not read off a chart."""
        chart = self.group.startswith(READ_OFF_CHARTS)
        return self.allocated_gib is not None and not self.near_limit and not chart and not self.out_of_memory


@dataclass(frozen=True, eq=False)
class Judged:
    """A published run beside its estimate."""

    case: Published
    run: Run
    estimate: Estimate

    @cached_property
    def error(self) -> float:
        """Relative error of the allocated peak."""
        assert self.case.allocated_gib is not None
        return self.estimate.allocated_peak / GIB / self.case.allocated_gib - 1

    @property
    def reserved_gib(self) -> float | None:
        """What torch had reserved, from torch or from nvidia-smi less what lies outside torch."""
        if self.case.reserved_gib is not None:
            return self.case.reserved_gib
        return None if self.case.smi_gib is None else self.case.smi_gib - self.estimate.outside_torch / GIB


def published() -> Iterator[Published]:
    """All runs of the table, in its order."""
    for line in Path(__file__).with_name("published.jsonl").read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        for run in group["runs"]:
            lengths = {key: run[key] for key in ("sequence_len", "micro_batch_size")}
            yield Published(
                id=run["id"],
                group=group["group"],
                source=group["source"],
                gpus=group["gpus"],
                config=group["config"] | lengths,
                deepspeed=group["deepspeed"],
                stack={key: value for key, value in group["stack"].items() if key in STACK_KEYS},
                allocated_gib=run.get("allocated_gib"),
                reserved_gib=run.get("reserved_gib"),
                smi_gib=run.get("smi_gib"),
                out_of_memory=run.get("out_of_memory", False),
                near_limit=run.get("near_limit", False),
                confidence=run.get("confidence", "high"),
            )


def judged() -> list[Judged]:
    """Every published run with its estimate."""
    from advisor.api import opened_run

    found: list[Judged] = []
    for case in published():
        run = opened_run(case.config, case.deepspeed, case.gpus, case.stack).run
        result = estimate(run)
        assert result is not None, f"{case.id} has a model and hardware that the catalogues know"
        found.append(Judged(case, run, result))
    return found
