"""Files in odd shapes, through the whole of `advisor new -y`: the right format and roles, or one plain line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main

from .meaning import meaning
from .odd_files import FILES, OddFile

NOT_WRITTEN = {
    "kto-mix: labels": "KTO",
    "a tokenized file": "tokenized already",
    "indented JSON with a BOM": "byte order mark",
}
"""What was hoped for, and is refused in plain words: the last by `datasets` itself."""


def new(case: OddFile, folder: Path, *more: str) -> tuple[int, str, dict[str, Any]]:
    """The exit code, what is said, and the config of `advisor new`."""
    content = case.content if isinstance(case.content, bytes) else case.content.encode("utf-8")
    (folder / case.file).write_bytes(content)
    output = folder / "run.yaml"
    command = ["new", case.model, str(folder / case.file), "--gpus", case.gpus, "-y", "-o", str(output), "--isolated"]
    found = CliRunner().invoke(main, [*command, *case.options, *more], catch_exceptions=False)
    return found.exit_code, found.output, yaml.safe_load(output.read_text()) if output.exists() else {}


def roles_in(case: OddFile) -> set[str]:
    """Who speaks last in each row."""
    text = case.content if isinstance(case.content, str) else ""
    rows: Sequence[Any] = json.loads(text.lstrip("\ufeff")) if text.startswith("[") else []
    rows = rows or [json.loads(line) for line in text.splitlines() if line.strip()]
    column, key = case.means["field"], case.means["role"]
    turns = [json.loads(row[column]) if isinstance(row[column], str) else row[column] for row in rows]
    return {each[-1][key] for each in turns}


@pytest.mark.parametrize("case", FILES, ids=[case.name for case in FILES])
def test_an_odd_file_is_read_right_or_refused_in_one_line(tmp_path: Path, case: OddFile):
    code, said, config = new(case, tmp_path)
    if case.name in NOT_WRITTEN:
        assert code == 2 and NOT_WRITTEN[case.name] in said and not config
        return
    if "stops" in case.means:
        assert code == 2 and not config, said
        lines = said.strip().splitlines()
        assert case.means["stops"] in said and case.file in said and len(lines) <= 5, said
        return
    assert code == 0, said
    found = meaning(config)
    if found["kind"] == "chat" and case.file.endswith("l"):
        assert roles_in(case) <= found["trains"]
    assert {key: found.get(key) for key in case.means if key != "trains"} == {
        key: value for key, value in case.means.items() if key != "trains"
    }
