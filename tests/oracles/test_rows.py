"""Rows as axolotl itself reads them: every entry that `new` writes trains in every row, and `check --data` says so."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ..datasets.odd_files import FILES, OddFile
from ..datasets.test_odd_files import NOT_WRITTEN, new
from .asking import Axolotl
from .axolotl_venv import Environment, available
from .tiny_model import write_tiny_model

pytestmark = pytest.mark.oracle

WORKER = Path(__file__).with_name("rows_worker.py")
REST = {
    "base_model": "./model",
    "chat_template": "chatml",
    "sequence_len": 4096,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-4,
}
WRITTEN = [case for case in FILES if "stops" not in case.means and case.name not in NOT_WRITTEN]
CHAT = '{"messages": [{"role": "user", "content": "a"}, {"role": "%s", "content": "b"}]}\n'


@pytest.fixture(scope="module")
def installed() -> Environment:
    return available()


@pytest.fixture(scope="module")
def trained(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Labels of each row of each file, by one process."""
    folder = tmp_path_factory.mktemp("rows")
    write_tiny_model(folder / "model")
    asked: dict[str, Any] = {}
    for at, case in enumerate(WRITTEN):
        (inside := folder / str(at)).mkdir()
        _, said, config = new(case, inside)
        assert config, said
        kept = {key: config[key] for key in ("rl",) if key in config}
        asked[case.name] = {**REST, **kept, "datasets": config["datasets"]}
    (folder / "asked.json").write_text(json.dumps(asked))
    done = installed.run("python", str(WORKER), "asked.json", "found.json", folder=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("name", [case.name for case in WRITTEN])
def test_every_row_is_trained(trained: Mapping[str, Any], name: str):
    counts = trained[name]
    assert isinstance(counts, list), counts
    assert counts and min(counts) > (0 if name != "a plain .txt" else -1), counts


@pytest.mark.parametrize("case", WRITTEN, ids=[case.name for case in WRITTEN])
def test_axolotl_accepts_the_config(axolotl: Axolotl, tmp_path: Path, case: OddFile, monkeypatch: pytest.MonkeyPatch):
    _, said, config = new(case, tmp_path)
    assert config, said
    answer = axolotl.says(config, tmp_path, 1)
    assert answer.ok, answer.error


@pytest.mark.parametrize(("role", "level"), [("assistant", "note"), ("bot", "error")])
def test_check_counts_what_axolotl_trains(installed: Environment, tmp_path: Path, role: str, level: str):
    write_tiny_model(tmp_path / "model")
    (tmp_path / "rows.jsonl").write_text(CHAT % role * 20)
    config = {**REST, "datasets": [{"path": "rows.jsonl", "type": "chat_template", "field_messages": "messages"}]}
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    command = ("advisor", "check", "run.yaml", "--data", "rows.jsonl", "--isolated", "--output-format", "json")
    done = installed.run(*command, folder=tmp_path)
    findings = json.loads(done.stdout)["runs"][0]["findings"]
    (said,) = [one for one in findings if one["rule"] == "data-axolotl-trains"]
    assert said["level"] == level, said
    assert ("trains on no token" in said["message"]) is (level == "error"), said
