"""Other trainers' names lead to axolotl's own, and never to a change that nobody asked for."""

from collections.abc import Callable

import pytest

from advisor.documents import Rename
from advisor.engine.registry import built_in_rules
from advisor.run import Run
from advisor.schemas import axolotl_keys
from advisor.schemas.synonyms import synonyms

TABLE = axolotl_keys()
ROOT = TABLE.rows(TABLE.root)
DATA = "base_model: Qwen/Qwen2.5-7B\n"


def test_each_leads_to_a_key_that_axolotl_takes():
    assert [one.key for one in synonyms().values() if "deprecated" in ROOT.get(one.means, {"deprecated": ""})] == []


def test_none_is_a_key_of_axolotl_itself():
    known = ROOT.keys() | {key for rows in TABLE.plugins.values() for key in rows}
    assert known.isdisjoint(synonyms())


def test_each_says_where_it_comes_from():
    assert all(one.origin for one in synonyms().values())


@pytest.mark.parametrize(
    ("key", "value", "means"),
    [
        ("epochs", "3", "num_epochs"),
        ("lr", "2e-5", "learning_rate"),
        ("max_seq_length", "4096", "sequence_len"),
        ("cutoff_len", "4096", "sequence_len"),
        ("wandb_run_name", "first", "wandb_name"),
        ("deepspeed_config", "ds.json", "deepspeed"),
        ("lora_rank", "16", "lora_r"),
    ],
)
def test_a_name_with_the_same_values_is_renamed(make_run: Callable[..., Run], key: str, value: str, means: str):
    (hit,) = built_in_rules("lint")["unknown-key"].finds(make_run(f"{DATA}{key}: {value}\n"))
    assert hit.edits == (Rename((key,), means),)


@pytest.mark.parametrize(
    ("key", "value", "means"),
    [
        ("per_device_train_batch_size", "2", "micro_batch_size"),
        ("gradient_accumulation", "8", "gradient_accumulation_steps"),
        ("grad_accum", "8", "gradient_accumulation_steps"),
        ("flash_attn", "fa2", "attn_implementation"),
        ("finetuning_type", "lora", "adapter"),
    ],
)
def test_one_that_takes_more_thought_is_named_alone(make_run: Callable[..., Run], key: str, value: str, means: str):
    (hit,) = built_in_rules("lint")["unknown-key"].finds(make_run(f"{DATA}{key}: {value}\n"))
    assert f"`{means}`" in hit.message and hit.edits == ()


def test_a_key_that_is_there_under_both_names_is_not_renamed(make_run: Callable[..., Run]):
    (hit,) = built_in_rules("lint")["unknown-key"].finds(make_run(DATA + "epochs: 3\nnum_epochs: 2\n"))
    assert "remove it" in hit.message and hit.edits == ()


@pytest.mark.parametrize("name", ["adam", "adam_8bit", "nadam", "sgdw", "paged_adam_8bit"])
def test_another_optimizer_is_not_taken_for_a_slip(make_run: Callable[..., Run], name: str):
    (hit,) = built_in_rules("lint")["unknown-optimizer"].finds(make_run(f"{DATA}optimizer: {name}\n"))
    assert hit.edits == () and "did you mean" not in hit.message
