"""The action at the root is the one in ``plugins/``, so that a workflow names the repository alone."""

import re

import pytest
import yaml

from .action import FILE, SOURCE, text


def test_it_is_written_from_the_present_one():
    assert FILE.read_text(encoding="utf-8") == text(), "run `python -m tests.release.action`"


@pytest.mark.parametrize("part", ["inputs", "outputs"])
def test_it_takes_and_gives_the_same(part: str):
    here, there = (yaml.safe_load(file.read_text(encoding="utf-8")) for file in (FILE, SOURCE))
    assert here[part] == there[part] != {}


def test_every_script_that_it_names_is_there():
    scripts = re.findall(r'"\$GITHUB_ACTION_PATH/(.+?)"', FILE.read_text(encoding="utf-8"))
    assert len(scripts) == 4 and all((FILE.parent / script).is_file() for script in scripts)
