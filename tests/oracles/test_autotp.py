"""DeepSpeed's AutoTP under transformers' Trainer, over gloo: what each rank holds, what it learns, where it stops."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepspeed")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from advisor.memory.estimate import counted_run
from advisor.memory.gradients import zero_gradients
from advisor.memory.model import stored_terms
from advisor.memory.optimizer_states import optimizer_terms
from advisor.memory.weights import weights_of
from advisor.opening import open_configs

from .ranks import total, trained_by

pytestmark = pytest.mark.oracle

MODEL: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 500,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
TIED = {"tie_word_embeddings": True}
ATTENTION = ["q_proj", "v_proj"]
Rank = dict[str, Any]


def deepspeed(stage: int, ranks: int = 2) -> dict[str, Any]:
    """The JSON; without AutoTP for one rank."""
    filled = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size", "gradient_clipping")
    cut = {"tensor_parallel": {"autotp_size": ranks}} if ranks > 1 else {}
    return {"zero_optimization": {"stage": stage}, "bf16": {"enabled": True}, **dict.fromkeys(filled, "auto"), **cut}


CUT: dict[str, dict[str, Any]] = {
    "stage 0": {"deepspeed": deepspeed(0)},
    "stage 1": {"deepspeed": deepspeed(1)},
    "stage 2": {"deepspeed": deepspeed(2)},
    "tied": {"deepspeed": deepspeed(1), "model": TIED},
    "biases": {"deepspeed": deepspeed(1), "model": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}},
    "norms of heads": {
        "deepspeed": deepspeed(1),
        "model": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]},
    },
}
STOPPED: dict[str, tuple[dict[str, Any], str]] = {
    "stage 3": ({"deepspeed": deepspeed(3)}, "AssertionError: Currently, the compatibility"),
    "adapters": ({"deepspeed": deepspeed(1), "targets": ATTENTION}, "KeyError: Parameter containing"),
    "adapters, stage 0": ({"deepspeed": deepspeed(0), "targets": ATTENTION}, "AssertionError: loss must be a scalar"),
    "adapters of a tied model": (
        {"deepspeed": deepspeed(1), "model": TIED, "targets": ATTENTION},
        "RuntimeError: mat1 and mat2 shapes",
    ),
    "one head of keys": ({"deepspeed": deepspeed(1), "model": {"num_key_value_heads": 1}}, "RuntimeError: shape"),
    "norms across heads": (
        {"deepspeed": deepspeed(1), "model": {"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"]}},
        "RuntimeError: The size of tensor a",
    ),
    "fused projections": (
        {
            "deepspeed": deepspeed(1),
            "model": {
                "model_type": "phi3",
                "architectures": ["Phi3ForCausalLM"],
                "pad_token_id": 0,
                "eos_token_id": 1,
                "bos_token_id": 2,
            },
        },
        "RuntimeError: mat1 and mat2 shapes",
    ),
    "cut by transformers too": ({"deepspeed": deepspeed(1), "both": True}, "NotImplementedError: Operator c10d"),
}


def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("autotp")
    (folder / "config.json").write_text(json.dumps(MODEL))
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Rank]:
    """What two ranks say, of all that is cut over them."""
    cases = [{"name": name, **case} for name, case in CUT.items()]
    cases += [{"name": name, **case} for name, (case, _) in STOPPED.items()]
    return trained_by("autotp_worker", 2, made(tmp_path_factory), cases)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> list[Rank]:
    """What four ranks say, of which two and two are cut over."""
    cases = [{"name": name, **CUT[name]} for name in ("stage 1", "stage 2")]
    return trained_by("autotp_worker", 4, made(tmp_path_factory), cases)


def agrees(rank: Rank, case: dict[str, Any], world: int, folder: Path) -> None:
    """Bytes of weights, gradients, master weights and states are as counted; shards may be padded."""
    (folder / "config.json").write_text(json.dumps(MODEL | case.get("model", {})))
    config = {"base_model": str(folder), "bf16": True, "optimizer": "adamw_torch"}
    run = open_configs(config, case["deepspeed"], f"{world}x a100-80gb", {"trainer": "hf-trainer"}).run
    assert run.model is not None
    run, model = counted_run(run, run.model)
    weights, padding = weights_of(run, model), 0 if world == 2 else 32
    assert rank["data_parallel"] == run.data_parallel_size == run.shard_size == world // 2
    assert rank["weights"] == total(stored_terms(run, weights))
    assert 0 <= rank["master"] + rank["moments"] - total(optimizer_terms(run, weights)) <= 12 * padding
    moment = rank["micro_steps"][-1]["end" if run.zero_stage == 0 else "ready" if run.zero_stage == 1 else "reduced"]
    counted = total(zero_gradients(run, weights))
    assert moment <= counted + 2 * padding if run.zero_stage == 2 and world > 2 else moment == counted


@pytest.mark.parametrize("name", CUT)
def test_each_rank_holds_what_is_counted(name: str, two: list[Rank], tmp_path: Path) -> None:
    for rank in two:
        agrees(rank[name], CUT[name], 2, tmp_path)


@pytest.mark.parametrize("name", ["stage 1", "stage 2"])
def test_states_are_sharded_over_the_ranks_with_other_rows(name: str, four: list[Rank], tmp_path: Path) -> None:
    assert [rank[name]["rows"] for rank in four[::2]] == [rank[name]["rows"] for rank in four[1::2]]
    assert four[0][name]["rows"] != four[2][name]["rows"]
    for rank in four:
        agrees(rank[name], CUT[name], 4, tmp_path)


def test_it_learns_as_one_rank_does(two: list[Rank], tmp_path_factory: pytest.TempPathFactory) -> None:
    case = {"name": "whole", "deepspeed": deepspeed(1, ranks=1)}
    (whole,) = trained_by("autotp_worker", 1, made(tmp_path_factory), [case])
    for rank in two:
        assert rank["stage 1"]["rows"] == whole["whole"]["rows"]
        assert rank["stage 1"]["losses"] == pytest.approx(whole["whole"]["losses"], rel=0.002)
        assert rank["stage 1"]["norms"] == pytest.approx(whole["whole"]["norms"], rel=0.02)


@pytest.mark.parametrize("name", STOPPED)
def test_what_autotp_stops_at(name: str, two: list[Rank]) -> None:
    _, words = STOPPED[name]
    for rank in two:
        assert rank[name]["stop"].startswith(words)
