"""sdpa on cards before Ampere: no kernel for bf16, and none for packed rows."""

import pytest

from advisor.memory.activations import saved_bytes
from advisor.memory.activations.attention import lacks_kernel, stops_in_varlen, varlen
from advisor.opening import open_configs

SDPA = {"base_model": "Qwen/Qwen2.5-0.5B", "sequence_len": 1024, "attn_implementation": "sdpa"}
BF16, FP16 = {"bf16": True}, {"bf16": False, "fp16": True}
SCORES = 14 * 1024 * 1024 * 4


def run_on(gpus: str, **keys: object):
    return open_configs({**SDPA, **keys}, gpus=gpus).run


def kept(gpus: str, **keys: object) -> int:
    run = run_on(gpus, **keys)
    assert run.model is not None
    return saved_bytes(run, run.model.blocks[0])


@pytest.mark.parametrize(
    ("gpus", "keys", "lacks"),
    [
        ("1x t4", BF16, True),
        ("1x v100-32gb", BF16, True),
        ("1x t4", FP16, False),
        ("1x t4", {"bf16": False}, False),
        ("1x t4", {**BF16, "attn_implementation": "eager"}, False),
        ("1x a100-40gb", BF16, False),
        ("1x mi300x", BF16, False),
    ],
)
def test_bf16_has_no_kernel_before_ampere(gpus: str, keys: dict[str, object], lacks: bool):
    assert lacks_kernel(run_on(gpus, **keys)) is lacks


def test_scores_are_kept_in_fp32_where_there_is_no_kernel():
    assert kept("1x t4", **BF16) - kept("1x t4", **FP16) > SCORES
    assert kept("1x a100-40gb", **BF16) == kept("1x t4", **FP16)


@pytest.mark.parametrize(("gpus", "stops"), [("1x t4", True), ("1x a100-40gb", False)])
def test_packed_rows_go_to_a_kernel_that_needs_ampere(gpus: str, stops: bool):
    run = run_on(gpus, sample_packing=True, **FP16)
    assert (stops_in_varlen(run), varlen(run)) == (stops, not stops)
    assert not stops_in_varlen(run_on(gpus, sample_packing=True, sdpa_varlen=False, **FP16))
