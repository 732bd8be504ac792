"""MiCS over gloo, around a model that transformers has loaded under ZeRO-3."""

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
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "dtype": "bfloat16",
}


def case(name: str, **more: object) -> dict[str, Any]:
    """Stage 3, and more of its keys."""
    zero = {"stage": 3, **more}
    settings = {"zero_allow_untested_optimizer": True, "train_micro_batch_size_per_gpu": 1}
    return {"name": name, "deepspeed": {"zero_optimization": zero, "bf16": {"enabled": True}, **settings}}


def test_shards_over_fewer_ranks_than_all_stop_deepspeed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    cases = [
        case("none"),
        case("off", mics_shard_size=-1),
        case("all", mics_shard_size=2),
        case("fewer", mics_shard_size=1),
    ]
    for rank in trained_by("mics_worker", 2, tmp_path, cases):
        assert (rank["none"], rank["off"]) == ("", "")
        for name in ("all", "fewer"):
            assert rank[name].startswith("AssertionError: Sharded parameters don't have the MiCS_CommGroups attached.")
