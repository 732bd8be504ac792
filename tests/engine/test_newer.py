"""What rests on tables alone is a warning with a newer library, and nothing else changes."""

from collections.abc import Mapping

import pytest

from advisor import check
from advisor.engine.newer import KNOWN
from advisor.schemas import axolotl_keys, deepspeed_keys

RUN: dict[str, object] = {
    "base_model": "NousResearch/Meta-Llama-3.1-8B",
    "datasets": [{"path": "made/up", "type": "alpaca"}],
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "num_epochs": 1,
    "learning_rate": 2e-4,
    "sequence_len": 2048,
    "bf16": True,
}


def level_of(rule: str, stack: Mapping[str, object], deepspeed: Mapping[str, object] | None = None, **keys: object):
    found = check(RUN | keys, deepspeed, gpus="1x a100-80gb", stack=stack).findings
    return next(each.level for each in found if each.rule == rule)


def test_the_tables_are_of_the_versions_that_a_run_has_by_default():
    assert (KNOWN.axolotl, KNOWN.deepspeed) == (axolotl_keys().version, deepspeed_keys().version)


@pytest.mark.parametrize(
    ("rule", "keys"),
    [
        ("wrong-type", {"sequence_len": "long"}),
        ("unknown-optimizer", {"optimizer": "adam_of_tomorrow"}),
        ("unknown-lr-scheduler", {"lr_scheduler": "hyperbolic"}),
    ],
)
def test_what_a_table_refuses_is_a_warning_with_a_newer_axolotl(rule: str, keys: dict[str, object]):
    assert level_of(rule, {}, **keys) == "error"
    assert level_of(rule, {"axolotl": "0.20.0"}, **keys) == "warning"


def test_a_newer_axolotl_moves_nothing_that_is_deepspeeds():
    zero = {"zero_optimization": {"stage": 2, "overlap_comm": "perhaps"}}
    assert level_of("deepspeed-wrong-type", {"axolotl": "0.20.0"}, zero) == "error"
    assert level_of("deepspeed-wrong-type", {"deepspeed": "0.19.8"}, zero) == "warning"


def test_what_does_not_fit_stays_an_error():
    full = {"adapter": None, "micro_batch_size": 64}
    assert level_of("does-not-fit", {"axolotl": "0.20.0"}, **full) == "error"
