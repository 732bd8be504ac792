"""What axolotl's READMEs say that example configs use, compared with the estimates: claims, not measurements.

``claims.jsonl`` restates the facts of each example on which memory depends. Nothing is said there of versions, of the
metric or, mostly, of the card: they count as reserved memory on one GPU, under the versions that axolotl pins today.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor.memory import Range, estimate
from advisor.opening import open_configs
from advisor.record import record
from advisor.util import GIB


@record
class Claim:
    """A claimed figure and the estimated range; ``reason`` says why there is none."""

    id: str
    config: str
    quoted_in: str
    variant: str
    model: str
    claimed_gib: float
    gpus: str
    allocated: int | None
    reserved: Range | None
    reason: str = ""

    @property
    def held(self) -> bool:
        """Whether the estimated range holds the claim."""
        return self.reserved is not None and self.reserved.low <= self.claimed_gib * GIB <= self.reserved.high


def claims() -> Iterator[Claim]:
    """All claims, in the table's order."""
    for line in Path(__file__).with_name("claims.jsonl").read_text(encoding="utf-8").splitlines():
        yield claim(json.loads(line))


def claim(said: Mapping[str, Any]) -> Claim:
    """A claim with its estimate, if the catalogue has the model."""
    run = open_configs(said["axolotl"], None, said["gpus"], None).run
    found = estimate(run)
    return Claim(
        id=said["id"],
        config=said["config"],
        quoted_in=said["quoted_in"],
        variant=said["variant"],
        model=said["axolotl"]["base_model"],
        claimed_gib=said["claimed_gib"],
        gpus=said["gpus"] if said["gpu_stated"] else "",
        allocated=found.allocated_peak if found else None,
        reserved=found.reserved_peak if found else None,
        reason="" if found else "model not in the catalogue",
    )
