"""What an sdist and a wheel hold: all that is shipped, and nothing else."""

import pytest

from advisor.util import toml_library

from .dist import ROOT_FILES, faults
from .places import ROOT

TRACKED = (
    "README.md",
    "Makefile",
    "advisor/util.py",
    "advisor/report/html.css",
    "rules/lint/some_rule.py",
    "plugins/__init__.py",
    "plugins/web/build.py",
    "plugins/web/README.md",
    "plugins/web/static/page.js",
    "sample_configs/lora-8b.yaml",
    "plugins/zed/src/lib.rs",
    "plugins/language_server/vscode/src/extension.js",
    "plugins/github_action/suggest.py",
    "tests/test_ci.py",
)
WHOLE = [
    "advisor/util.py",
    "advisor/report/html.css",
    "rules/lint/some_rule.py",
    "plugins/__init__.py",
    "plugins/web/build.py",
    "plugins/web/static/page.js",
    "sample_configs/lora-8b.yaml",
]


@pytest.mark.parametrize(
    "made", [["axolotl_advisor-1.0.dist-info/RECORD"], ["PKG-INFO", "setup.cfg", "a.egg-info/SOURCES.txt"]]
)
def test_all_that_is_shipped_is_right(made: list[str]):
    assert list(faults([*WHOLE, *made], TRACKED, ())) == []


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_that_is_forgotten_is_told(name: str):
    assert list(faults([each for each in WHOLE if each != name], TRACKED, ())) == [f"lacks {name}"]


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_ci.py",
        "Makefile",
        "advisor/scratch.py",
        "plugins/github_action/suggest.py",
        "plugins/zed/src/lib.rs",
        "plugins/language_server/vscode/src/extension.js",
    ],
)
def test_a_file_that_is_odd_is_told(name: str):
    assert list(faults([*WHOLE, name], TRACKED, ())) == [f"holds {name}"]


def test_an_sdist_also_needs_what_it_is_built_with():
    assert {"pyproject.toml", "LICENSE"} <= ROOT_FILES
    assert "lacks pyproject.toml" in list(faults(WHOLE, TRACKED, ROOT_FILES))


def test_every_package_is_in_the_wheel():
    listed = toml_library().loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    roots = [ROOT / "advisor", ROOT / "plugins"]
    folders = [file.parent.relative_to(ROOT) for root in roots for file in root.rglob("__init__.py")]
    names = {".".join(folder.parts) for folder in folders}
    assert {name if name.startswith("advisor") else f"advisor.{name}" for name in names} <= {*listed}
