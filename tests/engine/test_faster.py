"""``--fix --faster``: what is written once is all there is to write."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main

SAMPLES = Path(__file__).parents[2] / "sample_configs"
NODES = {"1x t4": "huggingface", "8x a100-80gb": "pytorch", "4x a100-40gb": "default"}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.yaml")))
def test_a_second_call_writes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    written = 0
    for gpus, flowchart in NODES.items():
        shutil.copytree(SAMPLES / "deepspeed", tmp_path / "sample_configs" / "deepspeed", dirs_exist_ok=True)
        config = shutil.copy(SAMPLES / name, tmp_path / "sample_configs")
        before = files(tmp_path)
        options = ("--isolated", "--gpus", gpus, "--flowchart", flowchart, "--fix", "--unsafe-fixes", "--faster")
        CliRunner().invoke(main, ["check", *options, str(config)])
        once = files(tmp_path)
        CliRunner().invoke(main, ["check", *options, str(config)])
        assert files(tmp_path) == once
        written += once != before
    assert written
