"""The patch for axolotl's docs: it is current, and applies to what is installed."""

import importlib.util
import runpy
import subprocess
from pathlib import Path

import pytest

from .docs_patch import FOLDER, PAGE, PATCH, TOPICS, patch


def test_it_is_current():
    assert PATCH.read_text(encoding="utf-8") == patch(), "run python -m tests.plugins.agents.docs_patch"


@pytest.mark.oracle
def test_axolotl_has_the_topic_once_it_is_applied(tmp_path: Path):
    found = importlib.util.find_spec("axolotl")
    if found is None or found.origin is None:
        pytest.skip("axolotl is not installed")
    topics = tmp_path / TOPICS
    topics.parent.mkdir(parents=True)
    topics.write_bytes((Path(found.origin).parent / "cli" / "agent_docs" / "__init__.py").read_bytes())
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--unidiff-zero", str(PATCH)], cwd=tmp_path, check=True)
    assert (tmp_path / PAGE).read_bytes() == (FOLDER / "axolotl-docs.md").read_bytes()
    before, after = (
        runpy.run_path(str(path))["TOPICS"]
        for path in (Path(found.origin).parent / "cli" / "agent_docs" / "__init__.py", topics)
    )
    assert after == {**before, "memory": PAGE}
