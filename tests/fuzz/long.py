"""Many inputs in portions, which can be stopped and goes on: ``python -m tests.fuzz.long FOLDER INPUTS [KIND...]``.

Works until there are ``INPUTS`` of each kind in ``FOLDER``, and prints what there is of each; 0 inputs only print it. Every portion
has a seed and a process of its own, and leaves a file; so several such commands can share a folder, and one that was
stopped loses its last portion alone. What fails is shown, kept in ``FOLDER``, and does not stop the rest.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PORTION = {"log": 1000, "hardware": 1000, "settings": 1000}
USUAL = 200
MOST_SECONDS = 3600
MOST_FAILURES = 20
"""Portions of a kind that may fail before the rest of it is left."""
CHILD = """\
import json, sys
from tests.fuzz.many import outcomes_of
print(json.dumps(outcomes_of(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), shrink=False)))
"""


def claimed(folder: Path, kind: str) -> tuple[int, Path]:
    """The next seed of a kind, taken for this process."""
    seed = 1 + len(list(folder.glob(f"{kind}-*.json")))
    while True:
        try:
            path = folder / f"{kind}-{seed}.json"
            path.touch(exist_ok=False)
            return seed, path
        except FileExistsError:
            seed += 1


def portion(folder: Path, kind: str) -> None:
    """One portion, in a process of its own, and its file."""
    seed, path = claimed(folder, kind)
    inputs = PORTION.get(kind, USUAL)
    command = [sys.executable, "-c", CHILD, kind, str(inputs), str(seed)]
    environment = os.environ | {"NO_COLOR": "1"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
        )
        failed = f"{done.stdout}\n{done.stderr}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        done, failed = None, f"no answer within {MOST_SECONDS} seconds"
    outcomes = {} if failed or done is None else json.loads(done.stdout)
    path.write_text(json.dumps({"outcomes": outcomes, "failed": failed}), encoding="utf-8")
    if failed:
        print(f"{path.name}: {failed[-4000:]}", flush=True)


def of_kind(folder: Path, kind: str) -> tuple[Counter[str], int]:
    """What became of the inputs of a kind so far, and how many portions failed."""
    texts = (path.read_text(encoding="utf-8") for path in folder.glob(f"{kind}-*.json"))
    done: list[dict[str, Any]] = [json.loads(text) for text in texts if text]
    return sum((Counter(one["outcomes"]) for one in done), Counter()), sum(bool(one["failed"]) for one in done)


def main(folder: Path, inputs: int, kinds: list[str]) -> int:
    """0 if nothing failed."""
    from .many import KINDS

    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        while (so_far := of_kind(folder, kind))[0].total() < inputs and so_far[1] < MOST_FAILURES:
            portion(folder, kind)
    failures = 0
    for kind in KINDS:
        outcomes, failed = of_kind(folder, kind)
        failures += failed
        told = ", ".join(f"{count} {what}" for what, count in outcomes.most_common())
        print(f"{kind}: {outcomes.total()} inputs, {told or 'none'}; {failed} portions failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
