# pyright: basic
"""Which datasets axolotl streams, asked of the functions of the installed axolotl."""

import __future__

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.oracle

ENTRIES = [{"path": "a/b", "name": "one", "skip": 0}, {"path": "c/d", "name": "two", "skip": 0}]
ASKED = ("_prepare_streaming_dataset", "_extract_pretraining_config")


class Config(dict):
    """Keys as attributes, None where there are none, as axolotl's own has them."""

    def __getattr__(self, key: str):
        return self.get(key)

    __setattr__ = dict.__setitem__


@pytest.fixture(scope="module")
def functions() -> dict:
    found = find_spec("axolotl")
    if found is None or found.origin is None:
        pytest.skip("axolotl is not installed")
    file = Path(found.origin).parent / "utils/data/sft.py"
    tree = ast.parse(file.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ASKED]
    names = {"DictDefault": Config}
    exec(compile(tree, file, "exec", flags=__future__.annotations.compiler_flag), names)
    return names


@pytest.mark.parametrize(
    "config",
    [{"pretraining_dataset": ENTRIES}, {"datasets": ENTRIES, "streaming": True, "sample_packing": True}],
    ids=["pretraining", "packed"],
)
def test_only_the_first_dataset_is_streamed(functions: dict, config: dict):
    seen = []
    functions["_load_streaming_dataset"] = lambda entry, *_: seen.append((entry["path"], entry["name"]))
    functions["_prepare_streaming_dataset"](Config(config, max_steps=10), None, None)
    assert seen == [("a/b", "one")]
