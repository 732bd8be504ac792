# pyright: basic
"""The ways of reading rows, by training, against the modules and functions of the installed axolotl."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from advisor.schemas.names import DATASET_STRATEGIES, PREFERENCE_STRATEGIES

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def strategies() -> Path:
    found = find_spec("axolotl")
    if found is None or found.origin is None:
        pytest.skip("axolotl is not installed")
    return Path(found.origin).parent / "prompt_strategies"


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("training", ["dpo", "kto", "orpo"])
def test_preference_training_reads_rows_by_these_functions_alone(strategies: Path, training: str):
    modules = {file.stem: functions(file) for file in (strategies / training).glob("*.py") if file.stem != "__init__"}
    assert modules == {name: set(names) for name, names in PREFERENCE_STRATEGIES[training].items()}


def test_other_training_reads_rows_by_these_modules(strategies: Path):
    modules = {path.stem for path in strategies.iterdir() if not path.name.startswith("__")}
    assert modules == set(DATASET_STRATEGIES)
