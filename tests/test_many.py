"""Ten thousand configs in one call stay under 300 MB, in every format: as eight hundred show that follow eight hundred."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.report import FORMATS

SAMPLES = Path(__file__).parents[1] / "sample_configs"
NAMES = ("full-1b-fits", "lora-8b-large-batch", "qlora-8b-24gb")
FEW, MANY, ALL = 800, 1600, 10_000
MOST_MEGABYTES = 300
MEASURED = """
import resource, subprocess, sys

done = subprocess.run(sys.argv[1:])
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def megabytes(folder: Path, count: int) -> float:
    """The most that one call over so many configs takes."""
    configs = folder / f"{count}"
    configs.mkdir()
    texts = [(SAMPLES / f"{name}.yaml").read_bytes() for name in NAMES]
    for number, text in zip(range(count), itertools.cycle(texts), strict=False):
        (configs / f"{number:05}.yaml").write_bytes(text)
    advisor = Path(sys.executable).with_name("advisor")
    asked = [part for name in FORMATS for part in ("--output-format", f"{name}={folder / name}")]
    command = [advisor, "check", "--isolated", "--gpus", "8x h100-80gb", *asked, configs]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)], capture_output=True, text=True, check=False, timeout=1500
    )
    code, kibibytes = map(int, done.stdout.split())
    assert code == 0, done.stderr
    assert len(json.loads((folder / "json").read_bytes())["runs"]) == count
    # On macOS ru_maxrss is in bytes.
    return kibibytes * (1 if sys.platform == "darwin" else 1024) / 1e6


@pytest.mark.oracle
def test_ten_thousand_configs_stay_under_300_megabytes(tmp_path: Path):
    few, many = (megabytes(tmp_path, count) for count in (FEW, MANY))
    each = (many - few) / (MANY - FEW)
    assert many + (ALL - MANY) * each < MOST_MEGABYTES, f"{few:.0f} MB, then {many:.0f} MB"
