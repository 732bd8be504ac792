"""The advisor's estimates, compared with what was measured."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from cases import Case, model_config

from advisor import estimate
from advisor.errors import InputError
from advisor.memory import Estimate, Phase

GIB = 2**30
PHASES = {
    "load": "load",
    "forward and loss": "forward",
    "backward": "backward",
    "optimizer step": "step",
    "evaluation": "eval",
}
ONLY_ON_GPUS = frozenset(["cuBLAS workspaces"])
STAND_IN = "h200"
"""The card that runs on the CPU are estimated for: only its size differs, and nothing is said of that."""


def compared(lines: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each run: peaks, the error of the estimate, and the error of each phase; then the medians."""
    errors: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for line in lines:
            try:
                found = estimated(line, Path(folder))
            except InputError as error:
                yield f"{line['name']}: {line['outcome']}; {error}"
                continue
            if line["outcome"] == "ok" and not line["case"].get("cap"):
                errors.append(peak(found, line) / line["allocated_peak"] - 1)
            yield f"{line['name']}: {compared_text(found, line)}"
    if errors:
        sizes = sorted(abs(error) for error in errors)
        yield f"{len(errors)} runs: median |error| {median(sizes):.1%}, largest {sizes[-1]:.1%}, bias {median(errors):+.1%}"


def estimated(line: dict[str, Any], folder: Path) -> Estimate:
    """The advisor's estimate of a measured run; a model that no catalogue has is given by its config.json."""
    config = dict(line["axolotl"])
    case = Case(**line["case"])
    if case.model.startswith("tiny"):
        (folder / "config.json").write_text(json.dumps(model_config(case)))
        config["base_model"] = str(folder)
    name = line["gpu"]["name"] if line["gpu"] else STAND_IN
    return estimate(config, line["deepspeed"], gpus=f"1x {name}", stack=line["stack"])


def compared_text(found: Estimate, line: dict[str, Any]) -> str:
    """Measured and estimated figures in one line."""
    if line["outcome"] == "error":
        return f"error: {line['error']}"
    if line["memory_limit"]:
        needed = f"needed {size(found.needed.low)} to {size(found.needed.high)}"
        return f"{line['outcome']} within {size(line['memory_limit'])}, {needed}"
    if line["outcome"] == "oom":
        return f"oom in {line['failed_in']}, estimated {size(found.allocated_peak)}, {found.verdict}"
    whole = f"measured {size(line['allocated_peak'])}, estimated {size(peak(found, line))}"
    parts = [f"{whole} ({peak(found, line) / line['allocated_peak'] - 1:+.1%})", phase_text(found, line)]
    if line["reserved_peak"]:
        inside = found.reserved_peak
        parts.append(f"reserved {size(line['reserved_peak'])} in {size(inside.low)} to {size(inside.high)}")
        parts.append(f"outside torch {size(line['outside_torch'])}, estimated {size(found.outside_torch)}")
        parts.append(found.verdict)
    return "; ".join(parts)


def phase_text(found: Estimate, line: dict[str, Any]) -> str:
    """How far each phase is off."""
    known = {phase.name: counted(phase, line) for phase in found.phases}
    both = {name: figure for name, figure in measured_phases(line).items() if name in known}
    return ", ".join(f"{PHASES[name]} {known[name] / figure - 1:+.1%}" for name, figure in both.items())


def measured_phases(line: dict[str, Any]) -> dict[str, int]:
    """Measured peaks by the advisor's phases: its loss lasts until the gradient has passed the head."""
    found = {name: figures["allocated_peak"] for name, figures in line["phases"].items()}
    if (after := found.pop("loss backward", None)) is not None:
        found["forward and loss"] = max(found["forward and loss"], after)
    return found


def peak(found: Estimate, line: dict[str, Any]) -> int:
    """The estimated peak of what was measured: phases that ran, on this device."""
    return max(counted(phase, line) for phase in found.phases if phase.name in line["phases"])


def counted(phase: Phase, line: dict[str, Any]) -> int:
    """A phase without what there is on GPUs alone, where the run was on the CPU."""
    left_out = ONLY_ON_GPUS if line["device"] == "cpu" else frozenset[str]()
    return sum(term.bytes for term in phase.terms if term.name not in left_out)


def size(count: int | None) -> str:
    """GiB, or MiB where that would be too coarse."""
    if count is None:
        return "unknown"
    return f"{count / GIB:.2f} GiB" if count >= GIB // 10 else f"{count / 2**20:.3f} MiB"
