"""Reward models end in a score: no logits, no head, and rows in pairs where two answers are compared."""

from pathlib import Path

from advisor.memory import estimate

from .small import small

MODEL = {"sequence_len": 1024, "micro_batch_size": 2}
REWARD, STEPS = {"reward_model": True}, {"process_reward_model": True}


def test_a_reward_model_has_one_output_and_no_head(tmp_path: Path) -> None:
    plain, made = small(tmp_path, **MODEL), small(tmp_path, **MODEL, **REWARD)
    head = plain.model.vocab_size * plain.model.hidden_size
    assert made.model.parameters == plain.model.parameters - (0 if plain.model.tied else head) + made.model.hidden_size
    assert (made.model.outputs, made.model.tied) == (1, False)


def test_a_process_reward_model_has_a_bias_for_each_class(tmp_path: Path) -> None:
    made = small(tmp_path, **MODEL, **STEPS, num_labels=3)
    assert [tensor.shape for tensor in made.model.tensors if tensor.kind == "head"] == [
        (3, made.model.hidden_size),
        (3,),
    ]


def test_only_whole_rows_are_compared_in_pairs(tmp_path: Path) -> None:
    tokens = [small(tmp_path, **MODEL, **keys).run.tokens for keys in ({}, REWARD, STEPS)]
    assert tokens == [2048, 4096, 2048]


def test_a_reward_model_needs_no_logits(tmp_path: Path) -> None:
    plain, made = (estimate(small(tmp_path, **MODEL, **keys).run) for keys in ({}, STEPS))
    assert plain is not None and made is not None
    of_loss = [max(phase.parts()["loss"] for phase in found.phases) for found in (plain, made)]
    assert of_loss[1] < 100 * 2048 < of_loss[0]


def test_reward_data_is_not_packed(tmp_path: Path) -> None:
    assert not small(tmp_path, **MODEL, **REWARD, sample_packing=True).run.sample_packing
