"""The worked example of an organisation's rule does as the site says."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main

from .texts import page

SECTION = page("rules-of-your-own")
CONFIG = """\
base_model: Qwen/Qwen3-8B
sequence_len: 4096
# Support tickets, anonymised.

datasets:
  - path: {path}
    type: alpaca
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the example, written as it says."""
    name = re.search(r"`(house_rules/\w+\.py)`", SECTION)
    code = re.search(r"```python\n(.*?)```", SECTION, re.DOTALL)
    settings = re.search(r'`(rules = \["house_rules"\])`', SECTION)
    assert name and code and settings
    (tmp_path / name[1]).parent.mkdir()
    (tmp_path / name[1]).write_text(code[1])
    (tmp_path / "advisor.toml").write_text(settings[1] + "\n")
    (tmp_path / "support.yaml").write_text(CONFIG.format(path="tatsu-lab/alpaca"))
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["trust"]).exit_code == 0
    return tmp_path


def test_the_commands_print_what_is_shown(repository: Path):
    shown = re.search(r"```\n(\$ advisor test.*?)```", SECTION, re.DOTALL)
    assert shown
    printed = ""
    for command in re.findall(r"^\$ advisor (.*)$", shown[1], re.MULTILINE):
        printed += f"$ advisor {command}\n" + CliRunner().invoke(main, command.split()).output
    assert printed == shown[1]


def test_the_rule_stays_silent_where_it_should(repository: Path):
    (repository / "support.yaml").write_text(CONFIG.format(path="s3://acme-data/support-2025"))
    result = CliRunner().invoke(main, ["check", "--select", "house-dataset", "support.yaml"])
    assert result.exit_code == 0 and "house-dataset" not in result.output


def test_the_path_of_the_rules_is_from_the_settings_file_on(repository: Path, monkeypatch: pytest.MonkeyPatch):
    (repository / "deep").mkdir()
    monkeypatch.chdir(repository / "deep")
    result = CliRunner().invoke(main, ["check", "--select", "house-dataset", "../support.yaml"])
    assert result.exit_code == 1 and "[house-dataset]" in result.output
