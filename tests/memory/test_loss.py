"""The loss by formula: bytes per logit by version and kind."""

from dataclasses import replace
from typing import Any, cast

import pytest

from advisor.memory import estimate, loss
from advisor.models.architecture import Architecture
from advisor.opening import open_configs
from advisor.run import Lora, Run
from advisor.run.stack import Stack

VOCABULARY, HIDDEN, TOKENS = 128_256, 4096, 4096
TRLS_OWN = Stack(trainer="hf-trainer")
"""TRL's functions for log-probabilities and entropy, without axolotl's kernels."""
MODEL = Architecture("m", "llama", HIDDEN, VOCABULARY, False, (), ())


def run_of(**facts: Any) -> Run:
    settled = cast("Any", {"sequence_len": TOKENS, "stack": Stack()} | facts)
    return Run(config=cast("Any", None), deepspeed=None, model=MODEL, hardware=None, **settled)


def per_logit(bytes_: int, tokens: int = TOKENS) -> float:
    return bytes_ / (tokens * VOCABULARY)


@pytest.mark.parametrize(("stack", "bytes_"), [(Stack(), 8), (Stack(axolotl="0.15.0"), 12), (TRLS_OWN, 12)])
def test_axolotls_kernels_make_one_gradient_of_the_logits(stack: Stack, bytes_: int):
    run = run_of(rl="dpo", scores_reference=True, precision="bf16", stack=stack)
    assert run.autocast
    assert per_logit(loss.loss_backward_peak_bytes(run, MODEL), run.tokens) == bytes_


@pytest.mark.parametrize(("version", "forward"), [("4.40.0", 12), ("4.48.1", 14), ("4.49.0", 10), ("5.16.1", 10)])
def test_the_forward_peak_follows_the_version_of_transformers(version: str, forward: int):
    run = run_of(stack=Stack(transformers=version))
    assert per_logit(loss.loss_forward_peak_bytes(run, MODEL)) == forward
    assert per_logit(loss.loss_backward_peak_bytes(run, MODEL)) == 12
    assert per_logit(loss.loss_saved_bytes(run, MODEL)) == 4


def test_fp32_logits_are_not_copied():
    assert per_logit(loss.loss_forward_peak_bytes(run_of(precision="fp32", autocast=False), MODEL)) == 8


def test_cut_cross_entropy_makes_no_logits():
    run = run_of(loss="cut")
    assert loss.loss_forward_peak_bytes(run, MODEL) < TOKENS * HIDDEN
    assert loss.evaluation_loss_bytes(run, MODEL) < TOKENS * HIDDEN


def test_liger_keeps_the_heads_gradient_only_where_the_head_is_trained():
    full = run_of(loss="liger-fused")
    frozen = replace(full, adapter="lora", lora=Lora(16, 32, 0.0, target_linear=True))
    saved = loss.loss_saved_bytes(full, MODEL) - loss.loss_saved_bytes(frozen, MODEL)
    assert saved == 2 * VOCABULARY * HIDDEN
    assert loss.loss_saved_bytes(frozen, MODEL) == 2 * TOKENS * HIDDEN


def test_liger_works_on_a_power_of_two_rows_at_once():
    frozen = run_of(loss="liger-fused", adapter="lora", lora=Lora(16, 32, 0.0, target_linear=True))
    chunk = loss.loss_forward_peak_bytes(frozen, MODEL) - loss.loss_saved_bytes(frozen, MODEL)
    assert chunk == 128 * VOCABULARY * 2


def test_liger_evaluates_with_plain_logits():
    assert per_logit(loss.evaluation_loss_bytes(run_of(loss="liger-fused"), MODEL)) == 10


def test_chunked_loss_keeps_half_precision_logits():
    run = run_of(loss="chunked", autocast=False)
    assert per_logit(loss.loss_saved_bytes(run, MODEL)) == 2
    assert per_logit(loss.loss_backward_peak_bytes(run, MODEL)) == 4


@pytest.mark.parametrize(("stack", "more"), [(Stack(), 6), (TRLS_OWN, 4)])
def test_a_reference_adds_its_logits_and_a_copy_to_axolotls_kernels(stack: Stack, more: int):
    """Metrics, which copy half of the logits, come when that copy is gone."""
    alone = run_of(rl="dpo", stack=stack)
    with_reference = run_of(rl="dpo", scores_reference=True, stack=stack)
    added = loss.loss_forward_peak_bytes(with_reference, MODEL) - loss.loss_forward_peak_bytes(alone, MODEL)
    assert per_logit(added, 2 * TOKENS) == more


@pytest.mark.parametrize(("stack", "forward", "backward"), [(Stack(), 20, 8), (TRLS_OWN, 16, 12)])
def test_kto_has_single_rows_and_copies_their_logits_twice(stack: Stack, forward: int, backward: int):
    run = run_of(rl="kto", scores_reference=True, micro_batch_size=2, stack=stack)
    assert run.tokens == 2 * TOKENS
    assert per_logit(loss.loss_forward_peak_bytes(run, MODEL), run.tokens) == forward
    assert per_logit(loss.loss_backward_peak_bytes(run, MODEL), run.tokens) == backward


@pytest.mark.parametrize(
    ("stack", "autocast", "alone", "added"),
    [
        (Stack(), True, (4, 8, 8), (2, 2, 2)),
        (Stack(), False, (2, 4, 4), (1, 1, 1)),
        (TRLS_OWN, True, (4, 6, 12), (2, 2, 2)),
        (TRLS_OWN, False, (2, 4, 4), (1, 1, 2)),
    ],
)
def test_a_cross_entropy_over_chosen_answers_keeps_half_of_the_logits_more(
    stack: Stack, autocast: bool, alone: tuple[int, int, int], added: tuple[int, int, int]
):
    peaks = (loss.loss_saved_bytes, loss.loss_forward_peak_bytes, loss.loss_backward_peak_bytes)
    for more in (False, True):
        run = run_of(rl="simpo", chosen_cross_entropy=more, autocast=autocast, stack=stack)
        found = [per_logit(one(run, MODEL), run.tokens) for one in peaks]
        assert found == [first + more * second for first, second in zip(alone, added, strict=True)]


@pytest.mark.parametrize(("length", "at_once"), [(60, 120), (64, 128), (100, 128)])
def test_trls_own_entropy_of_128_tokens_is_taken_at_once(length: int, at_once: int):
    """trl/trainer/utils.py, entropy_from_logits: three tensors in fp32; axolotl's kernel holds nothing."""
    run = run_of(rl="dpo", sequence_len=length, stack=TRLS_OWN)
    assert run.tokens == 2 * length
    assert per_logit(loss.metrics_peak_bytes(run, MODEL), at_once) == 12
    assert loss.metrics_peak_bytes(run_of(rl="dpo", sequence_len=length), MODEL) == 0


def test_capped_logits_cost_one_more_tensor():
    capped = replace(MODEL, model_type="gemma2")
    run = run_of()
    assert per_logit(loss.loss_saved_bytes(run, capped)) == 6
    plain, more = loss.logits_of(run, MODEL), loss.logits_of(run, capped)
    assert (more.saved, more.forward, more.backward) == (plain.saved + 2, plain.forward + 2, plain.backward + 2)


def test_masked_tokens_are_scored_at_the_worst_case() -> None:
    plugin = ["axolotl.integrations.diffusion.DiffusionPlugin"]
    config = {"base_model": "meta-llama/Llama-3.2-1B", "datasets": [{"path": "d"}], "learning_rate": 1e-4}
    run = open_configs(config | {"sequence_len": 512, "plugins": plugin}, gpus="1x h100").run
    assert run.model is not None
    assert run.loss == "diffusion"
    found = estimate(run)
    assert found is not None
    assert found.uncounted == ()
    assert loss.loss_forward_peak_bytes(run, run.model) == 16 * 512 * 128256
