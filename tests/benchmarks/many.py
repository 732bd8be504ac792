"""Every config of the corpus in one call: configs per second. ``python -m tests.benchmarks.many``, with ADVISOR_CORPUS set."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 5
GPUS = ("8x h100-80gb", "4x rtx-4090", "1x rtx-3090")


def main() -> None:
    """The whole command, its start included, in the format that a machine reads."""
    named = os.environ.get("ADVISOR_CORPUS")
    if not named:
        print("ADVISOR_CORPUS is not set: skipped")
        return
    folder = Path(named) / "corpus" / "axolotl"
    count = sum(b"base_model" in path.read_bytes() for path in folder.rglob("*.y*ml"))
    for gpus in GPUS:
        middle = statistics.median([seconds(folder, gpus) for _ in range(RUNS + 1)][1:])
        print(f"{count} configs on {gpus}: {middle:.2f} s, {count / middle:.0f} configs/s (median of {RUNS})")


def seconds(folder: Path, gpus: str) -> float:
    """Wall time of one call. It ends with 2, since some configs of axolotl's tests hold placeholders."""
    advisor = str(Path(sys.executable).with_name("advisor"))
    command = [advisor, "check", "--isolated", "--gpus", gpus, "--output-format", "json", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    taken = time.perf_counter() - start
    if not done.stdout.startswith(b"{"):
        raise SystemExit(done.stderr.decode()[-2000:])
    return taken


if __name__ == "__main__":
    main()
