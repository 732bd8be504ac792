"""What axolotl's expert parallelism saves of experts that no adapter is on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axolotl")
pytest.importorskip("transformers")

from .ranks import trained_by

pytestmark = pytest.mark.oracle

MODEL: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "architectures": ["Qwen3MoeForCausalLM"],
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
}


def test_the_first_process_saves_its_own_experts_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    first, second = trained_by("expert_parallel_worker", 2, tmp_path, [])
    assert set(first["experts"].values()) == set(second["experts"].values()) == {4}
    named = {int(found[1]) for name in first["saved"] if (found := re.search(r"\.experts\.(\d+)\.down_proj", name))}
    assert named == {0, 1, 2, 3}
