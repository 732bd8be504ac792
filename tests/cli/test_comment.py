"""The comment on a pull request of three configs, made by the command in a repository."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main

from .test_changed_since import commit, git

SAMPLES = Path(__file__).parents[2] / "sample_configs"
MOST_LINES = 45


@pytest.mark.slow
def test_three_configs_are_told_in_few_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    configs = tmp_path / "configs"
    configs.mkdir()
    large = (SAMPLES / "lora-8b-large-batch.yaml").read_text()
    (configs / "lora.yaml").write_text(large.replace("micro_batch_size: 8", "micro_batch_size: 1"))
    for name in ("full-1b-fits", "qlora-8b-24gb", "dpo-8b-full"):
        shutil.copy(SAMPLES / f"{name}.yaml", configs)
    (configs / "zero.json").write_text('{"zero_optimization": {"stage": 2}}\n')
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    git(tmp_path, "branch", "base")
    (configs / "lora.yaml").write_text(large)
    for name, old, new in (
        ("full-1b-fits", "sequence_len: 2048", "sequence_len: 16384"),
        ("qlora-8b-24gb", "lora_r: 32", "lora_r: 64"),
    ):
        text = (configs / f"{name}.yaml").read_text()
        assert old in text
        (configs / f"{name}.yaml").write_text(text.replace(old, new))
    done = CliRunner().invoke(main, ["check", "--against", "base", "--output-format", "markdown", "."])
    assert done.exit_code == 1, done.output
    unfolded = re.sub(r"<details>.*?</details>\n*", "", done.stdout, flags=re.DOTALL)
    assert len(unfolded.splitlines()) < MOST_LINES
    assert unfolded.startswith("### ❌ 2 of 3 changed configs no longer fit\n")
    rows = re.findall(r"^\| (.) `(.*?)` \|", unfolded, flags=re.MULTILINE)
    assert rows == [
        ("❌", "configs/full-1b-fits.yaml"),
        ("❌", "configs/lora.yaml"),
        ("✅", "configs/qlora-8b-24gb.yaml"),
    ]
    assert "./" not in done.stdout
    assert "Not shown: 1 YAML and 1 JSON that this pull request does not change." in done.stdout
