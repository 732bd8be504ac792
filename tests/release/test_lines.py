"""Every line that a user copies to install the advisor works from the tag of this version, or after such a line."""

import re
from pathlib import Path

import pytest

from advisor.about import REPOSITORY
from advisor.util import toml_library

from .lines import TAG, Install, first_block, installs

ROOT = Path(__file__).parents[2]
LINES = list(installs(ROOT))
EXTRAS = toml_library().loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.file}:{line.line}")
def test_a_line_is_of_the_tag_an_extra_or_a_checkout(line: Install):
    assert line.kind, f"{line.file}:{line.line}: {line.command} is not of this version's tag: {TAG}"
    assert set(line.extras) <= EXTRAS.keys()


def test_every_text_for_newcomers_installs_from_the_tag():
    first = {line.file: line.kind for line in reversed(LINES)}
    assert {file for file, kind in first.items() if kind == "tag"} >= {
        "README.md",
        "plugins/agents/README.md",
        "plugins/agents/axolotl-advisor/SKILL.md",
        "plugins/agents/axolotl-docs.md",
        "plugins/language_server/README.md",
    }
    assert f"pip install {TAG}\n" in first_block(ROOT)


@pytest.mark.parametrize(
    ("requirement", "kind"),
    [
        (TAG, "tag"),
        (f"axolotl-advisor[lsp] @ {TAG}", "tag"),
        ("axolotl-advisor[lsp,mcp]", "extra"),
        (".", "checkout"),
        ("axolotl-advisor", None),
        (re.sub(r"@v.*", "@v0.0.1", TAG), None),
        (f"git+{REPOSITORY}", None),
        (TAG.replace("/axolotl-advisor@", "/another@"), None),
        (f"another[lsp] @ {TAG}", None),
    ],
)
def test_a_line_that_nobody_can_run_is_told_apart(requirement: str, kind: str | None):
    assert Install("README.md", 1, requirement).kind == kind


def test_lines_are_found_in_blocks_in_sentences_and_in_quotes(tmp_path: Path):
    text = "first `pip install \"a[b] @ c\"` then\n```sh\npip install git+x@v1\n```\nand `pip install 'd[e]'`, `pip install .`.\n"
    (tmp_path / "README.md").write_text(text)
    found = [(line.line, line.requirement) for line in installs(tmp_path)]
    assert found == [(1, "a[b] @ c"), (3, "git+x@v1"), (5, "d[e]"), (5, ".")]
