"""Ten thousand configs in one call stay under 300 MB, in every format."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.report import FORMATS

SAMPLES = Path(__file__).parents[1] / "sample_configs"
CONFIGS = 10_000
MOST_MEGABYTES = 300
MEASURED = """
import resource, subprocess, sys

done = subprocess.run(sys.argv[1:])
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.oracle
def test_ten_thousand_configs_stay_under_300_megabytes(tmp_path: Path):
    folder = tmp_path / "configs"
    folder.mkdir()
    texts = [path.read_bytes() for path in sorted(SAMPLES.glob("*.yaml"))]
    for number, text in zip(range(CONFIGS), itertools.cycle(texts), strict=False):
        (folder / f"{number:05}.yaml").write_bytes(text)
    advisor = Path(sys.executable).with_name("advisor")
    asked = [part for name in FORMATS for part in ("--output-format", f"{name}={tmp_path / name}")]
    command = [advisor, "check", "--isolated", "--gpus", "8x h100-80gb", *asked, folder]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)], capture_output=True, text=True, check=False, timeout=1500
    )
    code, kibibytes = map(int, done.stdout.split())
    assert code == 1, done.stderr
    assert (tmp_path / "json").read_bytes().count(b'"verdict": "') == CONFIGS
    # On macOS ru_maxrss is in bytes.
    megabytes = kibibytes * (1 if sys.platform == "darwin" else 1024) / 1e6
    assert megabytes < MOST_MEGABYTES, f"{megabytes:.0f} MB"
