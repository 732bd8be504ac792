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
