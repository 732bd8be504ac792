"""All forms of the step to half precision, really trained for two steps: what the optimizer updates, and what moves."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepspeed")
pytest.importorskip("transformers")

from advisor.engine.registry import built_in_rules
from advisor.engine.steps import alternatives, run_after
from advisor.opening import open_configs
from advisor.run import Run

from .ranks import trained_by
from .test_safe_steps import MODEL

pytestmark = pytest.mark.oracle

RULE = built_in_rules("fit")["mixed-precision"]
CONFIG = {
    "base_model": "meta-llama/Llama-3.2-1B",
    "sequence_len": 16,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "optimizer": "adamw_torch",
    "bf16": False,
    "learning_rate": 1e-5,
}
FILLED = {
    "train_batch_size": 1,
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 1,
    "gradient_clipping": 1.0,
}
"""What transformers writes where the JSON says "auto"."""


def forms() -> dict[str, Run]:
    """The run after each form of the step, on one GPU with bf16 and on one without."""
    masters, pure = after("1x a100-80gb")
    (without_bf16,) = after("1x t4")
    return {"masters": masters, "pure": pure, "fp16": without_bf16}


def after(gpus: str) -> list[Run]:
    """The run after the step, by each of its alternatives."""
    start = open_configs(CONFIG, gpus=gpus).run
    ends = [run_after(start, edits, RULE) for edits in alternatives(RULE, start)]
    return [end for end in ends if end is not None]


def json_of(run: Run) -> dict[str, Any] | None:
    """The DeepSpeed JSON that the advisor writes, with what is "auto" filled in."""
    if run.deepspeed is None:
        return None
    written = json.loads(run.deepspeed.document.patched())
    return {key: FILLED[key] if value == "auto" else value for key, value in written.items()} | {
        "zero_allow_untested_optimizer": True
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("masters")
    (folder / "config.json").write_text(json.dumps(MODEL))
    cases = [{"name": name, "deepspeed": json_of(run)} for name, run in forms().items()]
    (found,) = trained_by("masters_worker", 1, folder, cases)
    return found


@pytest.mark.parametrize(
    ("form", "weights", "dtype"),
    [("masters", "bfloat16", "float32"), ("pure", "bfloat16", "bfloat16"), ("fp16", "float16", "float32")],
)
def test_the_optimizer_updates_what_the_advisor_says(trained: dict[str, Any], form: str, weights: str, dtype: str):
    assert trained[form]["weights"] == [weights]
    assert trained[form]["updated"] == trained[form]["moments"] == [dtype]
    assert forms()[form].has_masters == (dtype == "float32")


def test_at_a_low_rate_masters_move_and_most_bf16_weights_do_not(trained: dict[str, Any]):
    assert trained["masters"]["moved"] > 0.9
    assert trained["pure"]["moved"] < 0.3
    assert trained["fp16"]["moved"] > 0.9
