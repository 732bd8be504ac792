"""A folder with a run that does not fit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .terminal import LLAMA


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "full.yaml").write_text(LLAMA)
    return tmp_path


@pytest.fixture
def editor(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Makes an EDITOR that runs a line of shell on the file ``$1``."""
    place = tmp_path_factory.mktemp("editors")

    def make(line: str) -> str:
        script = place / "an editor.sh"
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
        return f"'{script}'"

    return make
