"""The key tables, and the walk along them; that they say what the libraries do is for the oracles."""

import json
from importlib.resources import files
from typing import Any

import pytest

from advisor.schemas import axolotl_keys, deepspeed_keys, fits, nearest
from tests.tables.generate import compact, dated, text_of


def found(values: dict[str, Any]) -> dict[str, bool]:
    """The paths of all keys, and whether each is known."""
    return {one.at: one.row is not None for one in axolotl_keys().walk(values)}


def test_the_tables_are_small_and_have_one_key_a_line():
    for name, table in (("axolotl", axolotl_keys()), ("deepspeed", deepspeed_keys())):
        text = files("advisor.schemas").joinpath(f"{name}.json").read_text(encoding="utf-8")
        assert len(text) < 200_000
        keys = sum(len(level["keys"]) for level in table.levels.values()) + sum(map(len, table.plugins.values()))
        assert text.count('":{"kinds":') == keys
        assert max(line.count('"kinds"') for line in text.splitlines()) == 1


def test_keys_are_known_at_their_own_level_alone():
    assert found(
        {"reshard_after_forward": True, "fsdp_config": {"reshard_after_forward": True, "sequence_len": 1}}
    ) == {
        "reshard_after_forward": False,
        "fsdp_config": True,
        "fsdp_config.reshard_after_forward": True,
        "fsdp_config.sequence_len": False,
    }


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ({}, {"type": True, "chat_template": True, "field_chosen": False, "length": False, "step_separator": False}),
        ({"rl": "orpo"}, {"type": True, "chat_template": True, "field_chosen": False, "length": False}),
        ({"rl": "dpo"}, {"type": True, "chat_template": False, "field_chosen": True, "ds_type": False}),
        ({"rl": "kto"}, {"type": True, "chat_template": False, "field_chosen": False, "trust_remote_code": True}),
    ],
)
def test_an_item_of_datasets_is_read_as_the_loss_has_it(values: dict[str, Any], known: dict[str, bool]):
    told = found({**values, "datasets": [dict.fromkeys(known, "words")]})
    assert {key: told[f"datasets.0.{key}"] for key in known} == known


def test_a_plugins_keys_are_known_while_it_is_listed():
    key = "liger_rms_norm"
    for plugins in (["axolotl.integrations.liger.LigerPlugin"], ["liger.LigerPlugin"]):
        assert found({"plugins": plugins, key: True})[key]
    for plugins in ([], None, "axolotl.integrations.liger.LigerPlugin", ["mine.Plugin"], [3]):
        assert not found({"plugins": plugins, key: True})[key]


def test_a_prefix_inside_fsdp_config_is_taken_off_as_axolotl_does():
    keys = {"fsdp_version": 2, "fsdp_offload_params": True, "fsdp_sharding_strategy": "FULL_SHARD"}
    known = {"fsdp_version": True, "fsdp_offload_params": True, "fsdp_sharding_strategy": False}
    assert found({"fsdp_config": keys}) == {"fsdp_config": True, **{f"fsdp_config.{k}": v for k, v in known.items()}}


def test_no_config_is_too_odd_to_walk_through():
    odd = {3: 1, "fsdp_config": [1], "datasets": {"path": "a"}, "trl": None, "lr_groups": [[{"name": 1}], None, 2]}
    assert found(odd) == {"fsdp_config": True, "datasets": True, "trl": True, "lr_groups": True}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gradient_checkpointin", "gradient_checkpointing"),
        ("context_parapllel_size", "context_parallel_size"),
        ("sequnece_len", "sequence_len"),
        ("pad_to_seq_len", "pad_to_sequence_len"),
        ("adam_eps", "adam_epsilon"),
        ("lora_alfa", "lora_alpha"),
        ("sequence_length", "sequence_len"),
        ("lr", None),
        ("debug", None),
        ("torch_dtype", None),
        ("full_finetune", None),
    ],
)
def test_a_name_is_guessed_only_where_one_is_clearly_nearest(name: str, meant: str | None):
    assert nearest(name, axolotl_keys().rows(axolotl_keys().root)) == meant


def test_two_names_equally_near_are_no_guess():
    assert nearest("lora_x_alpha", ["lora_y_alpha", "lora_z_alpha"]) is None


@pytest.mark.parametrize(
    ("kinds", "takes", "refuses"),
    [
        (["bool"], [True, 1, 0.0, "yes", "FALSE", "1"], [2, "maybe", None, [], 0.5]),
        (["int"], [1, True, 2.0, "3", " 4 ", "1_000", "5.0"], [0.5, "1e2", "x", None, [1], float("inf")]),
        (["float"], [1, True, 0.5, "1e-4", "2", "nan"], ["x", None, {}]),
        (["str"], ["", "x"], [1, True, None, ["x"]]),
        (["map"], [{}, {"a": 1}], [[], "x"]),
        ([{"values": ["auto"]}, "bool"], ["auto", True, "no"], ["full", 3]),
        ([{"pattern": "^fallback_"}], ["fallback_x"], ["x", "a_fallback_x", 3, None]),
        ([{"list": ["str"]}, "null"], [[], ["x"], None], ["x", [1], {}]),
        ([{"map": ["int"]}], [{"a": 1}, {"a": "1"}], [{"a": "x"}, 1]),
        ([{"level": "FSDPConfig"}], [{}, {"no": 1}], ["x", []]),
        (["any"], [None, 1, "x", []], []),
    ],
)
def test_values_are_converted_as_pydantics_lax_mode_does(kinds: list[Any], takes: list[Any], refuses: list[Any]):
    assert [value for value in takes if not fits(kinds, value)] == []
    assert [value for value in refuses if fits(kinds, value)] == []


def table(version: str, *keys: str) -> dict[str, Any]:
    level = {"forbids": False, "keys": {key: {"kinds": ["str"]} for key in keys}}
    return {"version": version, "root": "Root", "levels": {"Root": level}}


def test_a_new_version_dates_what_it_adds_and_what_it_drops():
    first = dated(table("1.0", "a", "b"), {})
    second = dated(table("2.0", "b", "c"), first)
    third = dated(table("3.0", "b", "c", "a"), second)
    assert second["levels"]["Root"]["keys"] == {"b": {"kinds": ["str"]}, "c": {"kinds": ["str"], "since": "2.0"}}
    assert second["gone"] == {"Root": {"a": "2.0"}}
    assert third["levels"]["Root"]["keys"]["c"]["since"] == "2.0"
    assert third["levels"]["Root"]["keys"]["a"]["since"] == "3.0"
    assert "gone" not in third
    assert json.loads(text_of(second)) == second
    assert f'"c":{compact(second["levels"]["Root"]["keys"]["c"])}\n' in text_of(second)


def test_the_same_version_again_changes_nothing():
    first = dated(table("2.0", "b", "c"), dated(table("1.0", "a", "b"), {}))
    assert dated(table("2.0", "b", "c"), first) == first
