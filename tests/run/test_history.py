"""Lines of this machine's measured runs that are none: skipped by the estimate, and named on standard error."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from advisor.run.history import MOST_BYTES, MeasuredRun, append, history, path
from advisor.run.history_schema import first_skipped

RUN = MeasuredRun("LoRA", "h200", 1, True, 100, 100, 120, 10, "2.13.0")
WHOLE = asdict(RUN)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    history.cache_clear()
    yield
    history.cache_clear()


def write(*lines: bytes) -> None:
    append(RUN)
    with path().open("ab") as file:
        file.write(b"\n".join(lines))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"kind": ', ":2:10: this run does not count: not valid JSON: Expecting value; remove the line"),
        (b"\x80", ":2: this run does not count: not valid JSON: it is not UTF-8; remove the line"),
        (b"[" * 50_000, ":2: this run does not count: not valid JSON: nested too deeply; remove the line"),
        (b"[]", ":2: this run does not count: the whole is `[]`; write a mapping, or remove the line"),
        (b"{}", ":2: this run does not count: `kind` is missing; add it, or remove the line"),
        ({"gpus": "2"}, ':2: this run does not count: `gpus` is `"2"`; write an integer, or remove the line'),
        ({"expandable": 1}, ":2: this run does not count: `expandable` is `1`; write true or false, or remove"),
        ({"kind": None}, ":2: this run does not count: `kind` is `null`; write a string, or remove the line"),
        ({"allocated": 0}, ":2: this run does not count: `allocated` is `0`; write a positive number, or remove"),
        ({"reserved": 1}, ":2: this run does not count: `reserved` is less than `allocated`; remove the line"),
    ],
)
def test_the_first_line_that_is_no_run_is_named_with_its_field(line: bytes | dict[str, object], said: str):
    write(line if isinstance(line, bytes) else json.dumps({**WHOLE, **line}).encode())
    assert history().runs == (RUN,)
    assert f"runs.jsonl{said}" in str(first_skipped())


def test_good_and_blank_lines_say_nothing():
    write(b"", b"  ", json.dumps(WHOLE).encode())
    assert history().skipped == 0
    assert first_skipped() is None


def test_a_line_that_the_tail_cuts_says_nothing():
    append(RUN)
    size = len(path().read_bytes())
    path().write_bytes(path().read_bytes() * (MOST_BYTES // size + 2))
    assert history().skipped == 0


def test_a_check_names_the_line_and_still_checks(tmp_path: Path):
    write(b'{"kind": "LoRA"}')
    (tmp_path / "run.yml").write_text("base_model: meta-llama/Llama-3.1-8B\n")
    command = [sys.executable, "-m", "advisor", "check", "--gpus", "8x h200", "--output-format", "json", "run.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert "runs.jsonl:2: this run does not count: `gpu` is missing; add it" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)


def test_good_runs_are_read_without_pydantic():
    write()
    code = (
        "import sys\nfrom advisor.session.rule_selection import tell_skipped\ntell_skipped()\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
