"""Published runs that differ in one setting: is the one that would be advised the faster one?

``python -m tests.benchmarks.pairs [APART]``: pairs whose measured rates are at least so far apart (1.05).
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from advisor.accuracy.timed import Timed, timed

SIZES = {"micro_batch_size", "gradient_accumulation_steps"}


@dataclass(frozen=True)
class Pair:
    """Two runs, and the setting in which they differ."""

    setting: str
    one: Timed
    other: Timed
    measured: float
    """Rate of the first over that of the second."""
    predicted: float

    @property
    def agrees(self) -> bool:
        """Whether the same run is the faster by both."""
        return (self.measured > 1) == (self.predicted > 1)


def flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf of a mapping with its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, json.dumps(value, sort_keys=True)


def settings_of(case: Timed) -> dict[str, str]:
    """All that a run was told, and what its kernels are."""
    told: dict[str, Any] = {"deepspeed": case.deepspeed or {}, "stack": case.stack, "conditions": str(case.conditions)}
    return {**dict(flat(case.config)), **dict(flat(told)), "gpus": case.gpus}


def setting_between(one: dict[str, str], other: dict[str, str]) -> str | None:
    """The one setting in which they differ: a key, a block of keys, or the micro batch at the same global batch."""
    paths = {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}
    blocks = {path.split(".")[0] for path in paths}
    if blocks == SIZES:
        rows = [int(each["micro_batch_size"]) * int(each["gradient_accumulation_steps"]) for each in (one, other)]
        return "micro_batch_size" if rows[0] == rows[1] else None
    if blocks <= {"deepspeed", "fsdp_config", "fsdp_version", "fsdp"} and blocks:
        return "sharding"
    return next(iter(blocks)) if len(blocks) == 1 else None


def pairs(apart: float) -> Iterator[Pair]:
    """Pairs of one source, model and hardware that differ in one setting and whose rates are far enough apart."""
    groups: dict[tuple[str, str, str, int], list[tuple[Timed, float, dict[str, str]]]] = {}
    for case in timed():
        said = case.predicted()
        if said is not None:
            key = (case.repository, str(case.config["base_model"]), case.gpus, int(case.config["sequence_len"]))
            row = (case, said.tokens_per_second_per_gpu, settings_of(case))
            groups.setdefault(key, []).append(row)
    for rows in groups.values():
        for (one, says, settings), (other, says_too, others) in combinations(rows, 2):
            ratio = one.tokens_per_second / other.tokens_per_second
            setting = setting_between(settings, others)
            if setting is not None and setting != "gpus" and max(ratio, 1 / ratio) >= apart:
                yield Pair(setting, one, other, ratio, says / says_too)


def main() -> None:
    """Prints the share by setting, and the misses."""
    found = list(pairs(float(sys.argv[1]) if len(sys.argv) > 1 else 1.05))
    right = sum(pair.agrees for pair in found)
    print(f"{len(found)} pairs, the advised one is the faster in {right} ({right / len(found):.1%})")
    of, hits = Counter(pair.setting for pair in found), Counter(pair.setting for pair in found if pair.agrees)
    for setting, count in of.most_common():
        print(f"  {setting:30} {hits[setting]} of {count}")
    for pair in found:
        if not pair.agrees:
            model = pair.one.config["base_model"]
            print(
                f"  miss {pair.setting}: {model} on {pair.one.gpus}: {pair.one.id} over {pair.other.id} "
                f"{pair.measured:.2f} measured, {pair.predicted:.2f} predicted"
            )


if __name__ == "__main__":
    main()
