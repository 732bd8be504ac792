"""Of a tied model, embedding and head are trained as two copies, or as one where PEFT is told to keep them tied."""

import pytest

from advisor.memory import estimate
from advisor.memory.adapters import adapter_groups
from advisor.memory.loss import head_is_trained

TIED = "base_model: meta-llama/Llama-3.2-1B\n"
UNTIED = "base_model: meta-llama/Llama-3.1-8B\n"
LORA = "sequence_len: 512\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_modules: [q_proj]\nbf16: true\n"
TYING = "peft_ensure_weight_tying: true\n"
TABLE = 128256 * 2048


def saving(*names: str) -> str:
    """A line that saves these modules."""
    return f"lora_modules_to_save: [{', '.join(names)}]\n"


def copied(run) -> int:
    """Elements of the trained copies of whole tables."""
    _, shapes = adapter_groups(run, run.model)
    return sum(shape[0] * shape[1] * count for shape, count in shapes if shape[0] == 128256)


@pytest.mark.parametrize("names", [("embed_tokens", "lm_head"), ("lm_head",), ("embed_tokens",)])
def test_one_copy_is_counted_where_the_ends_stay_tied(make_run, names):
    assert copied(make_run(TIED + LORA + saving(*names))) == len(names) * TABLE
    tied = make_run(TIED + LORA + saving(*names) + TYING)
    assert copied(tied) == TABLE
    assert head_is_trained(tied)


def test_other_modules_and_untied_models_are_counted_as_before(make_run):
    assert copied(make_run(TIED + LORA + saving("norm") + TYING)) == 0
    both = UNTIED + LORA + saving("embed_tokens", "lm_head")
    assert copied(make_run(both + TYING)) == copied(make_run(both))


def test_the_estimate_falls_by_a_copy_its_gradient_and_its_states(make_run):
    both = TIED + LORA + saving("embed_tokens", "lm_head")
    untied, tied = estimate(make_run(both)), estimate(make_run(both + TYING))
    assert untied is not None and tied is not None
    freed = untied.allocated_peak - tied.allocated_peak
    assert 2 * TABLE * 3 <= freed <= 4 * TABLE * 4 * 1.01
