"""Where a report names ``advisor verify``."""

import pytest

from advisor.api import check
from advisor.memory.basis import Basis
from advisor.record import replace
from advisor.report import render_check
from advisor.report.disagreement import asks_to_verify, disagreement

CONFIG = {
    "base_model": "meta-llama/Llama-3.2-1B",
    "adapter": "lora",
    "lora_r": 8,
    "lora_alpha": 16,
    "lora_target_linear": True,
    "sequence_len": 1024,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "bf16": True,
    "learning_rate": 1e-4,
    "datasets": [{"path": "a/b", "type": "alpaca"}],
}


@pytest.mark.parametrize(
    ("verdict", "kind", "asks"),
    [
        ("tight", "exact", True),
        ("fits", "approximate", True),
        ("fits", "exact", False),
        ("does-not-fit", "exact", False),
    ],
)
def test_a_run_near_the_limit_or_only_approximate_is_worth_a_trial(verdict: str, kind: str, asks: bool):
    found = check(CONFIG, gpus="1x h200")
    report = replace(found, verdict=verdict, basis=Basis(kind))  # pyright: ignore[reportArgumentType]
    assert asks_to_verify(report) == asks
    comment = render_check([report], "markdown")
    assert ("Does it disagree? `advisor verify config.yaml`" in comment) == asks


def test_the_command_may_be_pasted():
    assert disagreement("my run.yaml") == "does it disagree? `advisor verify 'my run.yaml'`"
