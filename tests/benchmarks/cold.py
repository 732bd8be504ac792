"""What a cold ``advisor check`` costs, compared with the imports that it cannot do without.

``python -m tests.benchmarks.cold``: by the clock, and by instructions where valgrind is installed.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS = 21
CONFIG = """\
base_model: meta-llama/Llama-3.1-8B
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_torch_fused
learning_rate: 0.00002
bf16: true
gradient_checkpointing: true
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
"""
FLOOR = [sys.executable, "-c", "import click, yaml"]


def main() -> None:
    """Interleaved runs, so that what slows the machine slows both."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        config.write_text(CONFIG, encoding="utf-8")
        advisor = str(Path(sys.executable).with_name("advisor"))
        commands = {
            "import click, yaml": FLOOR,
            "advisor check, fits": [advisor, "check", "--gpus", "8x h200", str(config)],
            "advisor check, does not fit": [advisor, "check", "--gpus", "1x rtx-4090", str(config)],
            "advisor --help": [advisor, "--help"],
        }
        for command in commands.values():
            seconds(command, folder)
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(PAIRS):
            for name, command in commands.items():
                taken[name].append(seconds(command, folder))
        has_valgrind = shutil.which("valgrind") is not None
        counted = {name: instructions(command, folder) for name, command in commands.items()} if has_valgrind else {}
    floor = statistics.median(taken["import click, yaml"])
    print(f"median of {PAIRS} interleaved runs")
    for name, times in taken.items():
        middle = statistics.median(times)
        print(f"{name:30} {middle * 1e3:6.0f} ms  {middle / floor:4.2f} x")
    if counted:
        least = counted["import click, yaml"]
        print("instructions, by valgrind")
        for name, count in counted.items():
            print(f"{name:30} {count / 1e6:6.0f} M   {count / least:4.2f} x")


def instructions(command: list[str], folder: str) -> int:
    """Of one process, which the clock of a busy machine does not sway."""
    counting = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable]
    script = command[1:] if command[0] == sys.executable else command
    done = subprocess.run(
        [*counting, *script], cwd=folder, capture_output=True, check=False, env=environment(folder), text=True
    )
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    if found is None:
        raise SystemExit(done.stderr)
    return int(found[1].replace(",", ""))


def seconds(command: list[str], folder: str) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, env=environment(folder))
    taken = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.decode())
    return taken


def environment(folder: str) -> dict[str, str]:
    """This one, with bytecode kept between the runs as it is for a user, whatever the shell says."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode")}


if __name__ == "__main__":
    main()
