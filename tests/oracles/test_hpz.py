"""hpZ over gloo: among whom DeepSpeed gathers weights, micro-step by micro-step."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepspeed")
pytest.importorskip("transformers")

from .ranks import trained_by

pytestmark = pytest.mark.oracle

MODEL: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}


def run(folder: Path, group: int, *, trained: str = "", accumulation: int = 1, models: int = 1) -> Any:
    """What the first of four ranks gathers in each micro-step, by the number of ranks; or why it stopped."""
    (folder / "config.json").write_text(json.dumps(MODEL))
    deepspeed = {
        "zero_optimization": {
            "stage": 3,
            "zero_hpz_partition_size": group,
            "stage3_param_persistence_threshold": 0,
            "stage3_max_live_parameters": 0,
            "stage3_max_reuse_distance": 0,
            "stage3_prefetch_bucket_size": 0,
        },
        "bf16": {"enabled": True},
        "zero_allow_untested_optimizer": True,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": accumulation,
    }
    case = {
        "deepspeed": deepspeed,
        "trained": trained,
        "checkpoints": not trained,
        "models": models,
        "micro_steps": 3 * accumulation,
    }
    return trained_by("hpz_worker", 4, folder, [case])[0]


BYTES = 2 * (2 * 128 * 32 + 2 * (4 * 32 * 32 + 3 * 32 * 64 + 2 * 32) + 32)
"""Of all weights in bf16."""
HEAD = 2 * 128 * 32


def test_trained_weights_are_gathered_over_all_once_an_optimizer_step(tmp_path: Path) -> None:
    """The first step has the partitions that ``zero.Init`` has made."""
    first, *others = run(tmp_path, 2)
    assert list(first) == ["2"]
    assert [found["4"] for found in others] == [BYTES, BYTES]
    assert all(found["2"] >= BYTES for found in others)


def test_while_gradients_accumulate_nothing_else_is_gathered_over_all(tmp_path: Path) -> None:
    found = run(tmp_path, 2, accumulation=2)
    assert [each.get("4", 0) for each in found] == [0, 0, BYTES, 0, BYTES, 0]


def test_frozen_weights_are_never_gathered_over_all(tmp_path: Path) -> None:
    """The head alone is trained: below it there is no backward, and its own gathers it once more."""
    first, *others = run(tmp_path, 2, trained="lm_head")
    assert list(first) == ["2"]
    assert [found["4"] for found in others] == [HEAD, HEAD]
    assert [found["2"] for found in others] == [BYTES, BYTES]


def test_without_it_every_gather_is_over_all(tmp_path: Path) -> None:
    assert [list(found) for found in run(tmp_path, 1)] == [["4"]] * 3


def test_a_second_model_under_zero_init_stops_at_the_groups_of_the_first(tmp_path: Path) -> None:
    assert run(tmp_path, 2, models=2) == "AssertionError: ZeRO parameter intra parallel group is already initialized"


def test_groups_that_do_not_divide_the_world_stop(tmp_path: Path) -> None:
    assert run(tmp_path, 3) == "AssertionError: 4 is not divisible by 3"
