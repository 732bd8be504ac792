# pyright: basic
"""The name of a prepared dataset's folder, asked of axolotl's own function after axolotl's own schema."""

import ast
import copy
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import read
from advisor.run.axolotl.prepared import dataset_hash

pytestmark = pytest.mark.oracle

PLAIN: dict[str, Any] = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "datasets": [{"path": "org/data", "type": "alpaca"}],
    "learning_rate": 0.0001,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "num_epochs": 1,
    "output_dir": "out",
    "sequence_len": 2048,
}
CHAT = {
    "path": "org/chat",
    "type": "chat_template",
    "split": "train[:20%]",
    "field_messages": "conversations",
    "message_field_role": "from",
    "message_field_content": "value",
    "roles_to_train": ["assistant"],
    "roles": {"user": ["human"], "assistant": ["gpt"]},
    "train_on_eos": "turn",
    "trust_remote_code": True,
}
CONFIGS = {
    "plain": {},
    "no length": {"sequence_len": None},
    "unpacked": {"sample_packing": False, "eval_sample_packing": False, "group_by_length": True},
    "two": {"datasets": [CHAT, {"path": "a.jsonl", "type": "completion", "ds_type": "json", "field": "text"}]},
    "turns": {
        "datasets": [CHAT | {"chat_template": "chatml", "message_property_mappings": {"tool": "tools"}}],
        "chat_template": "llama3",
        "special_tokens": {"pad_token": "<pad>", "eos_token": None},
        "eot_tokens": ["<end>"],
        "train_on_inputs": True,
    },
    "jinja": {"datasets": [CHAT | {"chat_template_jinja": "{{ messages }}", "shards": 4, "shards_idx": 1}]},
    "tokenizer": {"tokenizer_config": "org/tokenizer", "dataset_exact_deduplication": True},
    "files": {"datasets": [{"path": "json", "type": "alpaca", "data_files": ["a.json", "b.json"], "name": "x"}]},
}


@pytest.fixture(scope="module")
def says(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What axolotl calls each of them."""
    pytest.importorskip("axolotl")
    asked = json.dumps({name: merged(change) for name, change in CONFIGS.items()})
    command = [sys.executable, "-m", "tests.oracles.test_prepared"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def merged(change: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (PLAIN | change).items() if value is not None}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_prepared_dataset_lies_where_axolotl_looks_for_it(says: dict[str, str], tmp_path: Path, name: str):
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(merged(CONFIGS[name]), sort_keys=False), encoding="utf-8")
    assert dataset_hash(read(file)) == says[name]


def hasher() -> Any:
    """``generate_dataset_hash_from_config`` with what it needs, of a module whose other imports are not installed."""
    spec = importlib.util.find_spec("axolotl")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "utils" / "data"
    names: dict[str, Any] = {}
    exec("import hashlib, json\nfrom enum import Enum\nfrom pathlib import Path\nfrom typing import Any", names)
    for file in ("utils.py", "shared.py"):
        body = [node for node in ast.parse((folder / file).read_text(encoding="utf-8")).body if is_needed(node)]
        future = ast.parse("from __future__ import annotations").body
        exec(compile(ast.Module([*future, *body], []), file, "exec"), names)
    return names["generate_dataset_hash_from_config"]


def is_needed(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef(name=name):
            return "hash" in name or name in {"md5", "_stable_json"}
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("DATASET_HASH")
    return False


def main() -> None:
    """Name the configs of standard input, validated."""
    os.environ.update(HF_HUB_OFFLINE="1", AXOLOTL_DO_NOT_TRACK="1", CUDA_VISIBLE_DEVICES="")
    config: Any = importlib.import_module("axolotl.utils.config")
    wrapper: Any = importlib.import_module("axolotl.utils.dict").DictDefault
    capabilities = {"bf16": True, "fp8": True, "tf32": True, "compute_capability": "sm_89", "n_gpu": 1}
    found: dict[str, str] = {}
    generate = hasher()
    for name, values in json.load(sys.stdin).items():
        wrapped = wrapper(copy.deepcopy(values))
        environment = {"torch_version": "2.13.0"}
        valid = config.validate_config(wrapped, capabilities=capabilities, env_capabilities=environment)
        tokenizer = valid.tokenizer_config or valid.base_model_config or valid.base_model
        found[name] = generate(valid, valid.datasets, tokenizer)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
