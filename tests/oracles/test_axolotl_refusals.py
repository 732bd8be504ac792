"""Every refusal in axolotl's schema is known, and the case that stands for it is refused."""

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from advisor.schemas.validate.requests import capabilities

from .asking import Axolotl
from .refusals import Case, cases, rows

pytestmark = pytest.mark.oracle

FILES = ("utils/schemas/**/*.py", "integrations/*/args.py")
SAYS = 100
# One imports half of the trainer's stack; the other starts programs as soon as it is registered.
NOT_ASKED = {"axolotl.integrations.diffusion.DiffusionPlugin", "axolotl.integrations.nemo_gym.NemoGymPlugin"}


def raises() -> Iterator[tuple[str, int, str, str]]:
    """Each ``raise`` in the schema: file, line, function, and how it begins."""
    return (
        (file, node.lineno, function, " ".join(ast.unparse(node).split())[:SAYS]) for file, function, node in found()
    )


@cache
def words() -> dict[str, str]:
    """The longest part of each message that is the same whatever is refused, by file and line; at most 60 letters."""
    parts = {
        f"{file}:{node.lineno}": [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
        for file, _, node in found()
    }
    texts = {at: [" ".join(part.split()) for part in found if isinstance(part, str)] for at, found in parts.items()}
    return {at: max(found, key=len, default="")[:60] for at, found in texts.items()}


def found() -> Iterator[tuple[str, str, ast.Raise]]:
    spec = importlib.util.find_spec("axolotl")
    assert spec is not None and spec.submodule_search_locations
    package = Path(next(iter(spec.submodule_search_locations)))
    for file in sorted(file for pattern in FILES for file in package.glob(pattern)):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        yield from ((file.relative_to(package).as_posix(), *one) for one in raised(tree, ()))


def raised(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, ast.Raise]]:
    for child in ast.iter_child_nodes(node):
        inner = (*names, child.name) if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else names
        if isinstance(child, ast.Raise):
            yield ".".join(inner), child
        yield from raised(child, inner)


def test_every_raise_has_a_row():
    pytest.importorskip("axolotl")
    known = {(row["in"], row["line"], row["function"], row["says"]) for row in rows() if "line" in row}
    assert set(raises()) == known


def test_a_row_has_a_rule_with_cases_or_a_reason():
    for row in rows():
        assert ("rule" in row and row["cases"]) or (row["why_not"] and row["class"]), row


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_axolotl_refuses_what_stands_for_a_refusal(axolotl: Axolotl, tmp_path: Path, case: Case):
    if NOT_ASKED & set(case.config.get("plugins", ())):
        pytest.skip("its plugin cannot be registered here")
    torch = str(case.stack.get("torch", ""))
    run = case.run(tmp_path)
    n_gpu, able = run.world_size, capabilities(run)
    answer = axolotl.says(case.config, tmp_path, n_gpu, able, torch)
    assert not answer.ok
    at, _, number = case.name.rpartition("-")
    assert number != "0" or words().get(at, "") in answer.error
