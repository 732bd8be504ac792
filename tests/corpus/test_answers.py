"""What an option shows is what a fresh check says once its edits are made."""

from pathlib import Path

import pytest

from advisor.opening import Context

from . import answers
from .configs import copied_wild, folder
from .sweep import wild_files

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(answers.SAMPLES.parent)


@pytest.mark.parametrize("file", sorted(answers.SAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_option_of_a_sample_ends_as_it_says(file: Path):
    assert answers.faults(file, Context(working_directory=str(answers.SAMPLES.parent))) == []


@pytest.mark.skipif(folder() is None, reason="ADVISOR_CORPUS is not set")
@pytest.mark.parametrize("turn", range(4))
def test_every_option_of_strangers_configs_ends_as_it_says(tmp_path: Path, turn: int):
    files = list(wild_files(copied_wild(tmp_path)))[turn::4]
    gpus = answers.NODES[turn]
    found = {file.name: answers.faults(file, Context(working_directory=str(file.parent), gpus=gpus)) for file in files}
    assert {name: faults for name, faults in found.items() if faults} == {}
