"""Measures training steps over a matrix of settings, one process a run, one JSON line each: see README.md."""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cases import (
    Case,
    axolotl_of,
    cases_from,
    deepspeed_of,
    matrix,
    packages,
    runs_on_cpu,
    stack_of,
    tiny_matrix,
    without_limit,
)

HERE = Path(__file__).parent
VERSION = 1
LEAST_SECONDS = 20.0
"""With less time left no further run is begun: importing torch and transformers alone takes about as long."""
NOTHING: dict[str, Any] = {
    "failed_in": None,
    "step_seconds": None,
    "phases": {},
    "allocated_peak": None,
    "reserved_peak": None,
    "first_step_peak": None,
    "gpu": None,
    "outside_torch": None,
    "versions": {},
}


@dataclass(frozen=True)
class Settings:
    """How runs are carried out. ``deadline`` is on the clock of ``time.monotonic``."""

    device: str = "cuda"
    time_limit: float = 240.0
    deadline: float = float("inf")
    snapshots: Path | None = None


class Cut(Exception):  # noqa: N818
    """The time ran out in the middle of a run, which is left for the next call."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, list or compare."""
    given = parser().parse_args(arguments)
    if given.compare:
        from comparing import compared

        print("\n".join(compared(lines_of(given.output))))
        return 0
    todo = chosen(given)
    if given.list:
        print("\n".join(case.name for case in todo))
        return 0
    deadline = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")
    settings = Settings(given.device, given.time_limit, deadline, given.snapshot)
    try:
        measure(todo, given.output, settings)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("-o", "--output", type=Path, default=Path("measured.jsonl"), help="one JSON line a run, appended")
    made.add_argument("--minutes", type=float, help="stop after so many minutes; the most informative runs come first")
    made.add_argument("--time-limit", type=float, default=240.0, help="seconds for one run (default: 240)")
    made.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    made.add_argument("--tiny", action="store_true", help="a model of two layers")
    made.add_argument("--only", action="append", default=[], metavar="TEXT", help="only cases whose name has TEXT")
    made.add_argument("--case", action="append", default=[], metavar="JSON", help="this case instead of the matrix")
    made.add_argument("--runs", type=int, help="at most so many runs")
    made.add_argument("--retry-errors", action="store_true", help="runs that ended in an error are done again")
    made.add_argument("--snapshot", type=Path, metavar="DIR", help="write the CUDA allocator's snapshot of each run")
    made.add_argument("--list", action="store_true", help="print what would run")
    made.add_argument("--compare", action="store_true", help="print the advisor's estimates next to the output file")
    return made


def chosen(given: argparse.Namespace) -> list[Case]:
    """The cases to run: not measured yet, and with everything installed that they need."""
    whole = tiny_matrix() if given.tiny else matrix()
    cases = cases_from(map(json.loads, given.case)) if given.case else whole
    cases = [case for case in cases if all(text in case.name for text in given.only)]
    done = finished(lines_of(given.output), given.device, retry_errors=given.retry_errors)
    return [case for case in possible(cases, given.device) if case not in done][: given.runs]


def possible(cases: list[Case], device: str) -> list[Case]:
    """The cases that this machine can run; says once for each package what is left out."""
    wanted = {name for case in cases for name in packages(case)}
    missing = {name for name in wanted if importlib.util.find_spec(name) is None}
    for name in sorted(missing):
        say(f"{name} is not installed: {sum(name in packages(case) for case in cases)} cases are left out")
    able = [case for case in cases if not packages(case) & missing]
    return [case for case in able if device != "cpu" or runs_on_cpu(case)]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """What was measured so far; a last line that was cut off does not count."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line.strip()]


def finished(lines: list[dict[str, Any]], device: str, *, retry_errors: bool) -> set[Case]:
    """The cases that have a line on this device."""
    kept = (line for line in lines if line["device"] == device)
    return {Case(**line["case"]) for line in kept if not (retry_errors and line["outcome"] == "error")}


def complete(path: Path) -> None:
    """Takes off a last line that was cut off."""
    if path.exists() and not (text := path.read_bytes()).endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])


def measure(cases: list[Case], output: Path, settings: Settings) -> None:
    """Run all cases in order, while time is left; the next process imports while one runs."""
    complete(output)
    peaks = peaks_of(lines_of(output), settings.device)
    waiting: subprocess.Popen[str] | None = None
    child: subprocess.Popen[str] | None = None
    try:
        for number, case in enumerate(cases):
            if settings.deadline - time.monotonic() < LEAST_SECONDS:
                say(f"no time left: {len(cases) - number} cases remain")
                return
            child, waiting = waiting or start(case), None
            if number + 1 < len(cases):
                waiting = start(cases[number + 1])
            if case.cap and peaks.get(without_limit(case)) is None:
                say(f"{case.name}: left out, the same without a limit has no peak")
                stop(child)
                continue
            line = line_of(case, finish(child, case, peaks.get(without_limit(case)), settings), settings)
            append(output, line)
            peaks |= {case: line["allocated_peak"]} if line["outcome"] == "ok" else {}
            say(f"{case.name}: {summary(line)}")
    except Cut:
        say("no time left: the run in progress was cut off and is left for the next call")
    finally:
        for process in (child, waiting):
            stop(process)


def peaks_of(lines: list[dict[str, Any]], device: str) -> dict[Case, int]:
    """The allocated peaks of runs that went through."""
    went = (line for line in lines if line["outcome"] == "ok" and line["device"] == device)
    return {Case(**line["case"]): line["allocated_peak"] for line in went}


def start(case: Case) -> "subprocess.Popen[str]":
    """A process that imports what it needs and waits for its job."""
    allocator = f"expandable_segments:{case.expandable_segments}"
    environment = os.environ | {"PYTORCH_CUDA_ALLOC_CONF": allocator, "PYTORCH_ALLOC_CONF": allocator}
    environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "training.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(child: "subprocess.Popen[str]", case: Case, peak: int | None, settings: Settings) -> dict[str, Any]:
    """Hand the job over and wait for its figures. Raises ``Cut`` where the time ends before the run's limit."""
    limit = round(case.cap * peak) if case.cap and peak else None
    snapshot = settings.snapshots / f"{case.name.replace(' ', '_')}.pickle" if settings.snapshots else None
    job = {"case": asdict(case), "device": settings.device, "limit": limit}
    job["snapshot"] = str(snapshot) if snapshot else None
    left = settings.deadline - time.monotonic()
    try:
        out, err = child.communicate(json.dumps(job) + "\n", timeout=min(settings.time_limit, left))
    except subprocess.TimeoutExpired:
        stop(child)
        if left < settings.time_limit:
            raise Cut from None
        return failure(f"time limit of {settings.time_limit:g} s") | {"memory_limit": limit}
    return result_of(out, err, child.returncode) | {"memory_limit": limit}


def result_of(out: str, err: str, code: int) -> dict[str, Any]:
    """The child's last line, or how it died."""
    with suppress(json.JSONDecodeError, IndexError):
        found = json.loads(out.strip().splitlines()[-1])
        if isinstance(found, dict) and "outcome" in found:
            return found
    if code < 0:
        return failure(f"killed by {signal.Signals(-code).name}")
    last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), f"exit code {code}")
    return failure(last[:300])


def failure(reason: str) -> dict[str, Any]:
    """The result of a run that could not say anything itself."""
    return {"outcome": "error", "error": reason}


def line_of(case: Case, result: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """What is written: the settings as the advisor reads them, then the figures."""
    settings_part = {
        "version": VERSION,
        "name": case.name,
        "case": asdict(case),
        "device": settings.device,
        "axolotl": axolotl_of(case),
        "deepspeed": deepspeed_of(case),
        "stack": stack_of(case, result.get("versions", {})),
        "expandable_segments": case.expandable_segments,
    }
    return settings_part | NOTHING | result


def append(output: Path, line: dict[str, Any]) -> None:
    """One more line, on disk at once."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def stop(child: "subprocess.Popen[str] | None") -> None:
    """End a process and what it started."""
    if child is None or child.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def summary(line: dict[str, Any]) -> str:
    """The outcome for a person who watches."""
    if line["outcome"] != "ok":
        return f"{line['outcome']}: {line['error']}"
    reserved = f", reserved {line['reserved_peak'] / 2**30:.2f}" if line["reserved_peak"] else ""
    return f"allocated {line['allocated_peak'] / 2**30:.3f} GiB{reserved}, {line['step_seconds']:.2f} s a step"


def say(text: str) -> None:
    """To the person, not into the data."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
