"""The rows of evaluation as they are counted, against the batches that axolotl's own loader makes of 20 rows."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.opening import open_configs

from .axolotl_venv import UnavailableError, environment

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

DATA = {"path": "data.jsonl", "ds_type": "json", "type": "completion", "split": "train"}
PLAIN: dict[str, Any] = {
    "base_model": "./model",
    "datasets": [DATA],
    "sequence_len": 64,
    "eval_sequence_len": 16,
    "micro_batch_size": 2,
    "gradient_accumulation_steps": 1,
    "pad_to_multiple_of": 8,
    "num_epochs": 1,
    "learning_rate": 0.0001,
    "eval_strategy": "epoch",
    "output_dir": "out",
    "bf16": False,
    "fp16": False,
    "optimizer": "adamw_torch",
    "dataset_num_proc": 1,
    "val_set_size": 0.0,
}
SETS: dict[str, dict[str, Any]] = {
    "split": {"val_set_size": 0.5},
    "apart": {"test_datasets": [DATA | {"path": "test.jsonl"}]},
    "same": {"test_datasets": [DATA]},
}
PACKED = {"sample_packing": True, "attn_implementation": "flash_attention_2"}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"pad_to_sequence_len": True},
    "packed": PACKED,
    "packed in training": PACKED | {"eval_sample_packing": False},
    "neither": PACKED | {"eval_sample_packing": False, "pad_to_sequence_len": False},
    "larger batches": {"eval_batch_size": 4},
    "larger batches, packed": PACKED | {"eval_batch_size": 4},
    "longer": {"eval_sequence_len": 56, "sequence_len": 24},
    "longer, padded": {
        "eval_sequence_len": 56,
        "sequence_len": 24,
        "pad_to_sequence_len": True,
        "pad_to_multiple_of": 8,
    },
}
CASES = {f"{kind}: {way}": PLAIN | SETS[kind] | WAYS[way] for kind in SETS for way in WAYS}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int]]:
    """The most rows and tokens of a batch, as axolotl makes them."""
    if importlib.util.find_spec("axolotl") is None:
        pytest.skip("axolotl is not installed with these tests")
    try:
        axolotl = environment()
    except UnavailableError as error:
        pytest.skip(f"what axolotl needs cannot be had: {error}")
    folder = tmp_path_factory.mktemp("evaluation")
    (folder / "cases.json").write_text(json.dumps(CASES))
    done = axolotl.run("python", str(Path(__file__).with_name("evaluation_worker.py")), str(folder), folder=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "shapes.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_no_batch_of_evaluation_is_larger_than_counted(shapes: dict[str, tuple[int, int]], name: str, tmp_path: Path):
    config = CASES[name] | {"base_model": "meta-llama/Llama-3.2-1B"}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    run = open_configs(tmp_path / "run.yaml", None, "1x a100-80gb").run
    counted, (_, seen) = run.eval_batch_size * run.eval_sequence_len, shapes[name]
    assert seen <= counted
    assert counted - seen <= 8 * run.eval_batch_size, "rows of 20 lengths come within a few tokens of the limit"
