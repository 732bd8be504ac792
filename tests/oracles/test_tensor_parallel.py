"""Tensor parallelism over gloo: what each rank holds, and where training stops or goes wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("peft")

from advisor.memory.estimate import counted_run
from advisor.memory.gradients import gradient_terms
from advisor.memory.model import stored_terms
from advisor.memory.optimizer_states import optimizer_terms
from advisor.memory.weights import weights_of
from advisor.opening import open_configs

from .ranks import total, trained_by

pytestmark = pytest.mark.oracle

MODEL: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 1024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cut")
    (made / "config.json").write_text(json.dumps(MODEL))
    return made


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[dict[str, Any]]:
    """What two ranks say."""
    return trained_by("tensor_parallel_worker", 2, folder, [])


def test_each_rank_holds_its_cut_of_the_plan_and_all_of_the_rest(folder: Path, ranks: list[dict[str, Any]]) -> None:
    config = {"base_model": str(folder), "bf16": True, "optimizer": "adamw_torch", "tensor_parallel_size": 2}
    config |= {"attn_implementation": "flash_attention_2"}
    run = open_configs(config, None, "2x a100-80gb", {"trainer": "hf-trainer", "base_dtype": "bfloat16"}).run
    assert run.model is not None
    run, model = counted_run(run, run.model)
    weights = weights_of(run, model)
    for rank in ranks:
        assert rank["weights"] == total(stored_terms(run, weights))
        assert rank["gradients"] == total(gradient_terms(run, weights))
        assert rank["states"] == total(optimizer_terms(run, weights))


def test_clipping_and_fused_steps_stop_where_cut_and_whole_weights_meet(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert "mixed torch.Tensor and DTensor" in rank["clip"]
        assert "mixed torch.Tensor and DTensor" in rank["fused"]
        assert rank["plain"] == ""


def test_adapters_on_layers_cut_by_rows_take_the_ranks_apart(ranks: list[dict[str, Any]]) -> None:
    first, second = ranks
    assert first["columns"] == pytest.approx(second["columns"], rel=0.01)
    assert first["rows"] != pytest.approx(second["rows"], rel=0.01)


def test_fewer_ranks_than_all_stop_at_loading(folder: Path) -> None:
    for rank in trained_by("tensor_parallel_worker", 3, folder, []):
        assert "is not equal to world_size (3)" in rank["fewer"]


def test_fsdp_2_with_tensor_parallelism_imports_what_is_gone() -> None:
    from transformers.integrations import tensor_parallel

    assert not hasattr(tensor_parallel, "ReplicateParallel")
