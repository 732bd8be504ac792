"""What axolotl's READMEs say that example configs use, compared with the estimates: claims, not measurements.

``claims.jsonl`` restates the facts of each example on which memory depends. The figures are of reserved memory, as
axolotl logs it (``device_mem_reserved`` in examples/internvl3_5/README.md at axolotl b5c06b99b). The log resets torch's
peaks whenever it reads them (axolotl/utils/bench.py:54-59@0.19.0), and the loader empties the cache, so that they are
those of training, without the load. A claim counts under the versions that axolotl pins today unless ``stack`` says
what it was measured with, and not at all where ``excluded`` says why; ``proof`` names the commit or the date.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from advisor.memory import Estimate, Range, estimate
from advisor.memory.ranges import reserved_peak
from advisor.opening import open_configs
from advisor.record import record
from advisor.util import GIB

TRAINING = ("forward and loss", "backward", "optimizer step")
"""The phases that a figure of axolotl's log is the peak of."""


@record
class Claim:
    """A claimed figure, and of the training phases the estimated allocated peak and the range of reserved bytes.

    ``excluded`` says why the figure is not comparable, ``reason`` why there is no estimate; ``proof`` is the source of
    ``excluded`` or of ``stack``.
    """

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
    excluded: str = ""
    stack: Mapping[str, object] | None = None
    proof: str = ""

    @property
    def compared(self) -> bool:
        """Whether the figure can be compared with an estimate."""
        return self.reserved is not None and not self.excluded

    @property
    def held(self) -> bool:
        """Whether the estimated range holds the claim."""
        return self.reserved is not None and self.reserved.low <= self.claimed_gib * GIB <= self.reserved.high

    @property
    def error(self) -> float:
        """Relative error of the allocated peak, taken for what was reserved; of a claim that is compared alone."""
        return (self.allocated or 0) / (self.claimed_gib * GIB) - 1


def claims() -> Iterator[Claim]:
    """All claims, in the table's order."""
    for line in Path(__file__).with_name("claims.jsonl").read_text(encoding="utf-8").splitlines():
        yield claim(json.loads(line))


def claim(said: Mapping[str, Any]) -> Claim:
    """A claim with its estimate, if the catalogue has the model."""
    run = open_configs(said["axolotl"], None, said["gpus"], said.get("stack")).run
    found = estimate(run)
    peak = training_peak(found) if found else None
    return Claim(
        id=said["id"],
        config=said["config"],
        quoted_in=said["quoted_in"],
        variant=said["variant"],
        model=said["axolotl"]["base_model"],
        claimed_gib=said["claimed_gib"],
        gpus=said["gpus"] if said["gpu_stated"] else "",
        allocated=peak,
        reserved=None if peak is None else reserved_peak(run, peak),
        reason="" if found else "model not in the catalogue",
        excluded=said.get("excluded", ""),
        stack=said.get("stack"),
        proof=said.get("proof", ""),
    )


def training_peak(found: Estimate) -> int:
    """The allocated peak of the training phases."""
    return max(phase.bytes for phase in found.phases if phase.name in TRAINING)


def middle_error(found: Sequence[Claim]) -> float:
    """The median size of the errors of claims that are compared."""
    return median(abs(claim.error) for claim in found if claim.compared)
