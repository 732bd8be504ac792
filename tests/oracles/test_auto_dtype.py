"""When transformers fills "auto" into a DeepSpeed config: with the trainer's arguments, which scripts make first."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(("said", "filled"), [({"bf16": True}, True), ({"bf16": False}, False)])
def test_the_arguments_fill_in_the_dtype(said: dict[str, Any], filled: bool, tmp_path: Path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("deepspeed")
    from transformers.integrations.deepspeed import deepspeed_config

    config: dict[str, Any] = {
        "zero_optimization": {"stage": 3},
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto",
    }
    kept = transformers.TrainingArguments(output_dir=str(tmp_path), deepspeed=config, use_cpu=True, **said)
    found = deepspeed_config()
    assert kept is not None and found is not None and found["bf16"]["enabled"] is filled
