"""Menus -> configs: at once the plainest, then the ways that fit, whatever is asked of them."""

import json
from typing import Any

import pytest
import yaml
from advisor.plugins.web import answering

from advisor.new import Request
from advisor.new import ways as all_ways
from advisor.session import RunOptions

MENUS = {"model": "Qwen/Qwen3-8B", "method": "lora", "length": 2048, "tokens": 1e8, "gpus": "1x rtx-4090", "files": {}}
OWN = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 16}
OWN |= {"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256}


def asked(of: Any, **given: Any) -> dict[str, Any]:
    return json.loads(of(json.dumps(MENUS | given)))


def test_the_first_config_is_there_before_the_search_and_is_checked_as_any():
    found = asked(answering.draft, length=8192)["files"]
    written = yaml.safe_load(found["run.yaml"])
    assert (written["base_model"], written["adapter"], written["sequence_len"]) == ("Qwen/Qwen3-8B", "lora", 8192)
    request = {"config": found["run.yaml"], "files": {}, "gpus": "1x rtx-4090"}
    assert json.loads(answering.quick(json.dumps(request)))["fields"]["method"] == "lora"


def test_all_weights_come_with_their_json():
    assert set(asked(answering.draft, method="full")["files"]) == {"run.yaml", "run.deepspeed.json"}


def test_the_ways_are_those_of_new_and_another_method_asks_for_the_same():
    options = RunOptions(gpus="1x rtx-4090", isolated=True)
    own = all_ways(Request(model="Qwen/Qwen3-8B", sequence_len=2048, tokens=1e8, options=options))
    found = asked(answering.ways)
    assert found["files"] == {way.training: dict(way.files) for way in own.ways if way.fits}
    assert found["chosen"] == (own.chosen and own.chosen.training)
    assert found["html"].count("data-kind=") == len(found["files"]) and "does not fit" in found["html"]
    assert asked(answering.ways, method="qlora") == found


def test_dpo_is_written_as_dpo():
    found = asked(answering.ways, method="dpo")
    assert all(yaml.safe_load(files["run.yaml"])["rl"] == "dpo" for files in found["files"].values())


@pytest.mark.parametrize("of", [answering.draft, answering.ways])
def test_a_model_of_ones_own_is_read_from_its_config(of: Any):
    error = asked(of, model="nobody/mine")["error"]
    assert "is not known" in error and "--" not in error
    found = asked(of, model="nobody/mine", files={"config.json": json.dumps(OWN)})
    assert found["files"]
