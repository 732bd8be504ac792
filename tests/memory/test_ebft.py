"""EBFT: a frozen network next to the model, hidden states of whole answers, and short answers within documents."""

from pathlib import Path
from typing import Any

import pytest

from advisor.memory.ebft import one_graph
from advisor.memory.loss import strided_chunk
from advisor.memory.phases import Phases

from .small import LORA, P, Small, named, small

RL = {"rl": "ebft", "micro_batch_size": 2, "gradient_accumulation_steps": 3}
SERVER = {"trl": {"use_vllm": True, "vllm_mode": "server", "max_completion_length": 4}}
STRIDED = {**RL, "sequence_len": 40, "ebft": {"mode": "strided", "stride": 8, "context_length": 8}}


def phase(made: Small, name: str) -> dict[str, int]:
    """The terms of one phase by name."""
    phases = {one.name: one for one in Phases(made.run, made.model, made.weights).in_order}
    return named(phases[name].terms)


def made(folder: Path, **keys: Any) -> Small:
    """A run on one GPU."""
    return small(folder, gpus=1, **keys)


def test_the_base_under_an_adapter_is_the_frozen_network(tmp_path: Path) -> None:
    assert "feature network" not in phase(made(tmp_path, **RL, **SERVER, **LORA), "backward")
    assert phase(made(tmp_path, **RL, **SERVER), "backward")["feature network"] == 2 * P


def test_several_gpus_hold_each_others_copies_where_answers_are_strided(tmp_path: Path) -> None:
    alone, several = made(tmp_path, **STRIDED, **LORA), small(tmp_path, gpus=2, **STRIDED, **LORA)
    assert "feature network" not in phase(alone, "backward")
    assert phase(several, "backward")["feature network"] > 2 * P


def test_all_answers_of_a_generation_are_compared_at_once(tmp_path: Path) -> None:
    found = phase(made(tmp_path, **RL, **SERVER), "generation")
    assert found["hidden states"] == 2 * (2 * 3) * 10 * 100 * 5


def test_answers_are_appended_to_each_copy_of_a_document(tmp_path: Path) -> None:
    run = made(tmp_path, **STRIDED).run
    places = (40 - 8 - 8) // 8 + 1
    assert run.tokens == 2 * 4 * (40 + 8 * places)
    assert one_graph(run).tokens == 40 + 8 * places
    assert (run.attention, run.rollouts) == ("flex", None)


def test_the_loss_of_the_document_takes_its_logits_too(tmp_path: Path) -> None:
    ebft = {**STRIDED["ebft"], "ce_coef": 0.03}  # type: ignore[dict-item]
    alone, both = made(tmp_path, **STRIDED), made(tmp_path, **{**STRIDED, "ebft": ebft})
    scored = [
        sum(
            one.parts()["loss"]
            for one in Phases(each.run, each.model, each.weights).in_order
            if one.name == "forward and loss"
        )
        for each in (alone, both)
    ]
    assert scored[0] < scored[1]


def test_answers_count_up_to_2048_tokens_of_a_row(tmp_path: Path) -> None:
    half, all_, more = (
        phase(made(tmp_path, **RL, **SERVER, sequence_len=length), "generation")["hidden states"]
        for length in (1024, 2048, 4096)
    )
    assert 2 * half == all_ == more


def test_the_token_before_keeps_its_logits_and_what_it_was_drawn_from(tmp_path: Path) -> None:
    """fp32 logits of eight rows of 64 tokens, and 8 bytes a logit at the four places of each; 1,000 words."""
    found = phase(made(tmp_path, **STRIDED), "generation")
    assert found["logits of the token before"] == (4 * 8 * 64 + 8 * 8 * 4) * 1000


@pytest.mark.parametrize(("length", "chunk"), [(40, 32), (264, 256), (520, 256)])
def test_256_tokens_of_a_strided_row_have_logits_at_once(tmp_path: Path, length: int, chunk: int) -> None:
    assert strided_chunk(made(tmp_path, **{**STRIDED, "sequence_len": length}).run) == chunk
