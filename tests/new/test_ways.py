"""``ways``: which of full, LoRA and QLoRA there are, what each holds, and which is taken."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.errors import InputError
from advisor.new import Request, Way, Ways, drafted, ways
from advisor.new.methods import method_named
from advisor.session import RunOptions


def found(model: str = "Qwen/Qwen3-8B", gpus: str = "1x rtx-4090", **given: Any) -> Ways:
    return ways(Request(model=model, options=RunOptions(gpus=gpus), **given))


def way(ways_: Ways, training: str) -> Way:
    return next(one for one in ways_.ways if one.training == training)


def config(one: Way) -> dict[str, Any]:
    return yaml.safe_load(one.files["run.yaml"])


@pytest.fixture(scope="module")
def on_one_card() -> Ways:
    return found(tokens=20e6)


@pytest.fixture(scope="module")
def on_eight() -> Ways:
    return found("Qwen/Qwen3-32B", "8x h100-80gb", method="full", tokens=20e6)


def test_lora_is_taken_where_it_fits(on_one_card: Ways):
    assert [(one.training, one.fits) for one in on_one_card.ways] == [("full", False), ("lora", True), ("qlora", True)]
    assert on_one_card.chosen is way(on_one_card, "lora")
    assert not way(on_one_card, "full").files


def test_an_adapter_is_the_one_of_the_step(on_one_card: Ways):
    written = config(way(on_one_card, "qlora"))
    keys = ("adapter", "load_in_4bit", "lora_r", "lora_alpha", "lora_target_linear", "learning_rate")
    assert [written[key] for key in keys] == ["qlora", True, 16, 32, True, 2e-4]


def test_hours_and_cost_are_of_all_tokens(on_one_card: Ways):
    one = way(on_one_card, "lora")
    assert one.hours is not None and one.cost is not None and on_one_card.price is not None
    assert one.tokens_per_second is not None
    assert one.hours == pytest.approx(20e6 / one.tokens_per_second / 3600)
    assert one.cost == pytest.approx(one.hours * on_one_card.price.amount)


def test_a_step_has_the_usual_number_of_tokens(on_one_card: Ways, on_eight: Ways):
    def tokens(written: dict[str, Any], gpus: int) -> int:
        return gpus * written["micro_batch_size"] * written["gradient_accumulation_steps"] * written["sequence_len"]

    assert tokens(config(way(on_one_card, "lora")), 1) == 65536
    assert tokens(config(way(on_eight, "full")), 8) == 131072


def test_all_weights_at_a_low_rate_keep_masters(on_eight: Ways):
    one = way(on_eight, "full")
    assert on_eight.chosen is one and one.masters
    assert config(one)["learning_rate"] == 1e-5
    assert "pure-bf16-low-rate" not in {note.rule for note in one.notes}
    assert config(one)["deepspeed"] == "run.deepspeed.json" in one.files


def test_one_card_keeps_masters_too():
    one = way(found("Qwen/Qwen2.5-0.5B", method="full"), "full")
    assert one.masters and "run.deepspeed.json" in one.files


def test_the_json_lies_next_to_the_config(tmp_path: Path):
    one = way(found("Qwen/Qwen2.5-0.5B", file=f"{tmp_path}/deep/own.yml"), "full")
    assert list(one.files) == [f"{tmp_path}/deep/own.yml", f"{tmp_path}/deep/own.deepspeed.json"]
    assert yaml.safe_load(one.files[f"{tmp_path}/deep/own.yml"])["deepspeed"] == f"{tmp_path}/deep/own.deepspeed.json"


def test_hours_leave_out_what_takes_longer(on_one_card: Ways):
    lora, qlora = (way(on_one_card, name).hours or 0.0 for name in ("lora", "qlora"))
    assert lora < qlora
    late = found(tokens=20e6, hours=(lora + qlora) / 2)
    assert way(late, "qlora").why_not.startswith("takes longer than")
    assert late.chosen is way(late, "lora")
    assert found(tokens=20e6, hours=lora / 2).chosen is None


def test_much_to_learn_takes_all_weights_where_they_fit_on_the_cards():
    assert found(gpus="8x h100-80gb", tokens=200e6).chosen.title == "full"  # type: ignore[union-attr]
    assert found(gpus="8x h100-80gb", tokens=20e6).chosen.title == "LoRA"  # type: ignore[union-attr]
    assert found(gpus="1x rtx-4090", tokens=200e6).chosen.title == "LoRA"  # type: ignore[union-attr]


def test_the_base_in_four_bits_comes_before_host_memory():
    ways_ = found("Qwen/Qwen3-32B", "1x rtx-4090 host=96GiB")
    assert way(ways_, "lora").offloads
    chosen = found("google/gemma-3-27b-it", "1x rtx-4090").chosen
    assert chosen is not None and chosen.training == "qlora" and not chosen.offloads


def test_nothing_fits_and_nothing_is_there_to_write():
    ways_ = found("meta-llama/Llama-3.1-405B", "1x t4")
    assert ways_.chosen is None and not any(one.files for one in ways_.ways)


def test_a_method_that_does_not_fit_is_not_replaced():
    ways_ = found(method="full")
    assert ways_.chosen is None and way(ways_, "lora").fits


def test_pairs_have_their_own_keys_and_rates():
    ways_ = found("meta-llama/Llama-3.1-8B-Instruct", "4x l40s", method="dpo")
    written = config(way(ways_, "lora"))
    assert (written["rl"], written["learning_rate"], written["num_epochs"]) == ("dpo", 5e-6, 1)
    assert not {"sample_packing", "eot_tokens"} & written.keys()
    assert not {"roles", "ds_type", "message_property_mappings"} & written["datasets"][0].keys()
    assert 4 * written["micro_batch_size"] * written["gradient_accumulation_steps"] == 64


def test_the_end_of_an_answer_is_named_where_it_is_not_the_eos():
    assert config(way(found("google/gemma-2-9b-it", "1x h100-80gb"), "lora"))["eot_tokens"] == ["<end_of_turn>"]
    assert "eot_tokens" not in config(way(found("Qwen/Qwen3-8B"), "lora"))
    base = config(way(found("meta-llama/Llama-3.1-8B", "1x h100-80gb"), "lora"))
    assert (base["chat_template"], base["eot_tokens"]) == ("llama3", ["<|eot_id|>"])


def test_evaluations_come():
    written = config(way(found(), "lora"))
    assert written["val_set_size"] > 0 and written["evals_per_epoch"] * written["num_epochs"] > 1


def test_a_card_without_flash_attention_packs_nothing():
    written = config(way(found("meta-llama/Llama-3.2-1B", "1x t4"), "lora"))
    assert written["attn_implementation"] == "sdpa" and "sample_packing" not in written
    assert written["fp16"] is True


def test_experts_keep_their_own_weights():
    written = config(way(found("zai-org/GLM-4.5-Air", "8x h100-80gb"), "qlora"))
    assert written["lora_target_modules"] == ["q_proj", "k_proj", "v_proj", "o_proj"]


def test_rows_are_no_longer_than_the_model_takes():
    assert config(way(found("openai-community/gpt2"), "lora"))["sequence_len"] == 1024
    assert config(way(found(sequence_len=1500), "lora"))["sequence_len"] == 1500


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "Qwen/Qwen3-8C"}, "--model-config"),
        ({"model": "Qwen/Qwen3-8C"}, "--online"),
        ({"model": "Qwen/Qwen33-8B"}, "did you mean `Qwen/Qwen3-8B`"),
        ({"gpus": ""}, "--gpus"),
        ({"hours": 3.0}, "--tokens"),
    ],
)
def test_what_must_be_stated_is_said_with_its_option(given: dict[str, Any], said: str):
    with pytest.raises(InputError) as caught:
        found(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize("word", ["kto", "ORPO", "grpo", "reward", "pretraining"])
def test_other_methods_are_one_sentence_and_an_example(word: str):
    with pytest.raises(InputError) as caught:
        method_named(word)
    assert "axolotl's own" in caught.value.remedy and (
        "examples/" in caught.value.remedy or "docs/" in caught.value.remedy
    )


def test_an_unknown_method_lists_those_that_there_are():
    with pytest.raises(InputError, match="none of these"):
        method_named("sgd")


def test_a_draft_is_where_the_search_begins_and_may_be_too_large():
    request = Request(model="Qwen/Qwen3-8B", options=RunOptions(gpus="1x rtx-4090"))
    written = yaml.safe_load(drafted(request, "lora")["run.yaml"])
    assert (written["adapter"], written["micro_batch_size"]) == ("lora", 1)
    assert set(drafted(request, "full")) == {"run.yaml", "run.deepspeed.json"}
