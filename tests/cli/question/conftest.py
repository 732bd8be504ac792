"""A folder with a run that does not fit, and something to start it with."""

from pathlib import Path

import pytest

from .terminal import CONFIG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Its own tree: a repository, as far as anybody looks."""
    home = tmp_path / "own"
    (home / ".git").mkdir(parents=True)
    (home / "run.yml").write_text(CONFIG)
    program = home / "bin" / "axolotl"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "started $@"\nexit 7\n')
    program.chmod(0o755)
    return home
