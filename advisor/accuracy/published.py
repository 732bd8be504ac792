"""Published runs with measured memory.

``published.jsonl`` holds one group of like runs a line, with its public source: figures alone. Where the Trainer's own
memory tracker measured, the peak is that of training: it restarts once the model is loaded
(transformers/trainer_utils.py:562,638, TrainerMemoryTracker@4.48.1).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from advisor.record import record
from advisor.run.stack import Stack

STACK_KEYS = frozenset(item.name for item in fields(Stack))
READ_OFF_CHARTS = "LK-"
"""Figures of this group were read off pictures: for ranges and out-of-memory, not for error statistics."""


@record(eq=False)
class Measured:
    """One measured run. Memory in GiB per GPU; ``smi_gib`` is nvidia-smi's figure less the idle one.

    ``near_limit``: squeezed by the card, or by ``limit_gib`` of it. ``phases``: those that ran, None for all.
    ``file`` and ``line``: where somebody's own run stands.
    """

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
    limit_gib: float | None = None
    out_of_memory: bool = False
    near_limit: bool = False
    confidence: str = "high"
    phases: frozenset[str] | None = None
    model: Mapping[str, Any] | None = None
    """The model's config, where ``base_model`` names nothing that is published."""
    file: str = ""
    line: int = 0

    @property
    def counts(self) -> bool:
        """Whether it enters error statistics: an allocated peak, of a card with room, not read off a chart."""
        chart = self.group.startswith(READ_OFF_CHARTS)
        return self.allocated_gib is not None and not self.near_limit and not chart and not self.out_of_memory

    @property
    def repository(self) -> str:
        """Where the source lies: ``owner/name``, without the file."""
        return self.source.removeprefix("github:").partition(":")[0]


def published() -> Iterator[Measured]:
    """All runs of the table, in its order."""
    for line in Path(__file__).with_name("published.jsonl").read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        for run in group["runs"]:
            lengths = {key: run[key] for key in ("sequence_len", "micro_batch_size")}
            yield Measured(
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
                phases=frozenset(group["phases"]) if "phases" in group else None,
            )
