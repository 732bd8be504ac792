"""What the page is packed from: each file once, all that it imports, the same from a wheel as from a checkout."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from advisor.plugins.web.sources import PLUGINS, sources

from ...test_house import MODULES, imports

ROOT = Path(__file__).parents[3]
SAYS = """
import sys
from advisor.plugins.web.build import key
from advisor.plugins.web.sources import sources
print(key(), *(name for _, name in sources()))
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
OWN = {f"plugins.web.{Path(name).stem}" for name in PLUGINS if "/web/" in name and "__init__" not in name}
HEAVY = {"torch", "transformers", "deepspeed", "pydantic", "jsonschema", "numpy", "axolotl"}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A folder with the files where a wheel has them: rules and plugins inside the package."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "advisor", tmp_path / "advisor", ignore=ignore)
    for name in ("rules", "plugins"):
        shutil.copytree(ROOT / name, tmp_path / "advisor" / name, ignore=ignore)
    shutil.copytree(ROOT / "sample_configs", tmp_path / "advisor" / "sample_configs")
    return tmp_path


def said(folder: Path) -> tuple[str, list[str], set[str]]:
    """The page's key, the names in its archive, and the packages that were loaded to tell them."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-W", "error", "-c", SAYS]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    key, *names = done.stdout.split()
    return key, names, set(done.stderr.split())


def test_a_wheel_packs_the_files_of_a_checkout_each_once_and_without_torch(wheel: Path):
    _, names, loaded = said(wheel)
    assert sorted(names) == sorted({name for _, name in sources()})
    assert not HEAVY & loaded


def needed() -> Iterator[str]:
    """All modules of the advisor that an answer may import, the rules and families among them."""
    todo = [*OWN, *(name for name in MODULES if name.startswith(("rules", "models.")))]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in MODULES and name not in seen:
            seen.add(name)
            yield name
            todo += [*imports(name), name.rpartition(".")[0]]


def test_the_page_packs_every_module_that_its_own_import():
    """Of the plugins' own the archive names each by hand."""
    for name in OWN:
        tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
        inner = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1]
        names = {f"plugins.web.{node.module or alias.name}" for node in inner for alias in node.names}
        assert names <= OWN


def test_all_that_an_answer_imports_is_packed():
    packed = {path.resolve() for path, _ in sources()}
    found = sorted(needed())
    assert len(found) > 300 and set(found) >= OWN
    assert [name for name in found if MODULES[name].resolve() not in packed] == []


@pytest.mark.parametrize(
    "part", ["accuracy/", "plugins/mcp/", "plugins/axolotl/", "plugins/web/build", "cli/launch", "report/sarif", ".mjs"]
)
def test_what_the_browser_never_runs_is_left_out(part: str):
    names = [name for _, name in sources()]
    assert not [name for name in names if part in name]
    assert "advisor/rules/lint/unknown_key.py" in names and "advisor/rules/flowchart.toml" in names


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed", ["advisor/util.py", "advisor/rules/flowchart.toml", "advisor/plugins/web/static/page.js"]
)
def test_the_key_changes_with_a_source_and_with_nothing_else(wheel: Path, changed: str):
    before, *_ = said(wheel)
    with (wheel / "advisor" / "accuracy" / "__init__.py").open("a") as file:
        file.write("# more\n")
    assert said(wheel)[0] == before
    with (wheel / changed).open("a") as file:
        file.write("\n")
    assert said(wheel)[0] != before
