"""The learning rate of a full fine-tune that gets an adapter."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from advisor.engine.plan_findings import step_finding
from advisor.engine.registry import built_in_rules
from advisor.engine.states import State, Step
from advisor.engine.steps import alternatives, run_after
from advisor.learning import band_of, rate_of, rate_shown
from advisor.run import Run

MakeRun = Callable[..., Run]
RULES = built_in_rules("fit")
SIZES = {"0.5B": "Qwen/Qwen2.5-0.5B", "8B": "meta-llama/Llama-3.1-8B", "70B": "meta-llama/Llama-3.1-70B"}
METHODS = {
    "sft": "",
    "pretraining": "pretraining_dataset: [{path: d}]\n",
    "reward-model": "reward_model: true\n",
    **{rl: f"rl: {rl}\n" for rl in ("dpo", "ipo", "kto", "orpo", "simpo", "grpo")},
}
ADAM = ("adamw_torch", "adamw_torch_fused", "adamw_bnb_8bit", "paged_adamw_8bit", "adamw_torch_4bit", "adopt_adamw")
OTHERS = ("lion_8bit", "sgd", "adafactor", "galore_adamw", "apollo_adamw", "schedule_free_adamw", "ademamix", "dion")
RATES = (1e-9, 5e-8, 5e-7, 1e-6, 5e-6, 1e-5, 2e-5, 5e-5, 9e-5, 1e-4, 2e-4, 1e-3, 0.5)
BASE = "base_model: meta-llama/Llama-3.1-8B\nlearning_rate: {rate}\n"


def stepped(run: Run, rule: str = "lora") -> Run:
    """The run after a rule's edits, read again from what is written."""
    (edits,) = alternatives(RULES[rule], run)
    after = run_after(run, edits, RULES[rule])
    assert after is not None
    return after


def said(before: Run, rule: str = "lora") -> str:
    return RULES[rule].caveat(before, stepped(before, rule))


@pytest.mark.parametrize("rule", ["lora", "qlora"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("method", METHODS)
def test_no_step_moves_a_rate_out_of_the_band_nor_down(make_run: MakeRun, rule: str, size: str, method: str):
    base = f"base_model: {SIZES[size]}\n{METHODS[method]}"
    for optimizer, rate in itertools.product((ADAM[1], OTHERS[0]), RATES):
        before = make_run(f"{base}optimizer: {optimizer}\nlearning_rate: {rate:g}\n")
        after = stepped(before, rule)
        band, new = band_of(before, after.adapter), rate_of(after)
        assert new is not None
        if new != rate:
            assert band is not None and optimizer in ADAM
            assert rate < new and band.low <= new <= band.high
            assert new in (pytest.approx(10 * rate), band.low, band.high)
        assert (new == rate) == bool(RULES[rule].caveat(before, after))


@pytest.mark.parametrize("optimizer", [*ADAM, *OTHERS])
def test_ten_times_holds_for_adams_kind_alone(make_run: MakeRun, optimizer: str):
    before = make_run(BASE.format(rate="2e-5") + f"optimizer: {optimizer}\n")
    assert rate_of(stepped(before)) == (2e-4 if optimizer in ADAM else 2e-5)
    assert (f"since `{optimizer}` is not plain Adam" in said(before)) == (optimizer in OTHERS)


@pytest.mark.parametrize(
    ("rate", "new"),
    [(1e-5, 1e-4), (7e-5, 7e-4), (1e-6, 2e-5), (9.9e-5, 9.9e-4), (1e-4, 1e-4), (3e-4, 3e-4), (0.01, 0.01)],
)
def test_a_rate_that_is_enough_for_lora_stays(make_run: MakeRun, rate: float, new: float):
    before = make_run(BASE.format(rate=rate))
    assert rate_of(stepped(before)) == new
    assert said(before) == ("" if rate != new else f"`learning_rate` stays: {rate_shown(rate)} is enough for LoRA.")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("lr_groups: [{name: a, modules: [q_proj], lr: 1e-5}]", "since `lr_groups` is set too"),
        ("loraplus_lr_ratio: 16", "since `loraplus_lr_ratio` is set too"),
        ("loraplus_lr_embedding: 1e-6", "since `loraplus_lr_embedding` is set too"),
        ("embedding_lr: 1e-6", "since `embedding_lr` is set too"),
        ("embedding_lr_scale: 0.5", "since `embedding_lr_scale` is set too"),
        ("rl: simpo", "what LoRA takes here is not known"),
    ],
)
def test_a_rate_that_stands_with_others_or_has_no_band_stays_and_the_step_says_so(
    make_run: MakeRun, lines: str, words: str
):
    before = make_run(BASE.format(rate="2e-7") + lines)
    assert rate_of(stepped(before)) == 2e-7
    assert words in said(before)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "`learning_rate` is missing: LoRA usually takes 2e-4."),
        ("learning_rate: auto", "`learning_rate` is no rate: LoRA usually takes 2e-4."),
        ("learning_rate: ${LR}", "`learning_rate` is no rate: LoRA usually takes 2e-4."),
        ("learning_rate: 0", "`learning_rate` is no rate: LoRA usually takes 2e-4."),
        ("learning_rate: .nan", "`learning_rate` is no rate: LoRA usually takes 2e-4."),
    ],
)
def test_a_rate_that_is_not_there_is_not_made_up(make_run: MakeRun, line: str, words: str):
    before = make_run(f"base_model: meta-llama/Llama-3.1-8B\n{line}\n")
    assert str(stepped(before).config.get("learning_rate")) == str(before.config.get("learning_rate"))
    assert said(before) == words


OWN = '{{"zero_optimization": {{"stage": 2}}, "optimizer": {{"type": "AdamW", "params": {{"lr": {lr}}}}}}}'


@pytest.mark.parametrize(("lr", "new"), [('"auto"', 2e-4), ("1e-5", 2e-5)])
def test_a_rate_that_deepspeeds_own_optimizer_does_not_read_stays(make_run: MakeRun, lr: str, new: float):
    before = make_run(BASE.format(rate="2e-5"), "8x a100-80gb", OWN.format(lr=lr))
    assert rate_of(stepped(before)) == new
    assert ("the DeepSpeed JSON's optimizer does not read it" in said(before)) == (new == 2e-5)


def test_an_adapter_that_is_there_keeps_its_rate(make_run: MakeRun):
    lora = "adapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\n"
    before = make_run(BASE.format(rate="2e-5") + lora)
    assert rate_of(stepped(before, "qlora")) == 2e-5
    assert said(before, "qlora") == ""


@pytest.mark.parametrize(
    ("written", "edited"), [("2e-5", "2.0e-4"), ("0.00002", "0.0002"), ("2.0e-05 # mine", "2.0e-4 # mine")]
)
def test_the_edit_is_one_line_and_yaml_reads_it_as_a_number(make_run: MakeRun, written: str, edited: str):
    text = stepped(make_run(BASE.format(rate=written))).config.patched().decode()
    assert f"\nlearning_rate: {edited}\n" in text
    values: dict[str, Any] = yaml.safe_load(text)
    assert values["learning_rate"] == 2e-4 and values["adapter"] == "lora"


def test_what_stays_is_said_behind_the_cost_of_the_step(make_run: MakeRun):
    before = make_run(BASE.format(rate="2e-5") + "optimizer: lion_8bit\n")
    edits = RULES["lora"].edits(before)
    assert isinstance(edits, dict)
    finding = step_finding(Step(RULES["lora"], edits, State(before), State(stepped(before))), 1)
    assert finding is not None
    for words in (finding.cost, finding.price):
        assert "suffer. `learning_rate` stays, since `lion_8bit` is not plain Adam; LoRA usually takes more." in words


@pytest.mark.parametrize(
    ("rate", "shown"), [(2e-5, "2e-5"), (1.25e-4, "1.25e-4"), (1e-3, "1e-3"), (0.5, "5e-1"), (1, "1e0")]
)
def test_a_rate_is_shown_as_people_write_it(rate: float, shown: str):
    assert rate_shown(rate) == shown
