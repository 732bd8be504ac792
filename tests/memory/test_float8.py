"""Training in fp8 has a verdict: its linear layers hold their casts beyond what they keep."""

import pytest

from advisor.memory import estimate
from advisor.memory.activations import backward_peak_bytes, saved_bytes
from advisor.opening import open_configs
from advisor.run import Run

CONFIG: dict[str, object] = {
    "base_model": "meta-llama/Llama-3.2-3B",
    "datasets": [{"path": "org/data", "type": "alpaca"}],
    "learning_rate": 2e-5,
    "sequence_len": 512,
    "micro_batch_size": 16,
    "sample_packing": True,
}


def opened(**changes: object) -> Run:
    return open_configs(CONFIG | changes, gpus="4x h100").run


@pytest.mark.parametrize(
    ("config", "recipe", "width"),
    [({}, "tensorwise", 8), ({"fp8_config": {"recipe": "rowwise_with_gw_hp"}}, "rowwise_with_gw_hp", 3)],
)
def test_casts_are_held_next_to_what_a_layer_computes(config: dict[str, object], recipe: str, width: int):
    plain, run = opened(), opened(fp8=True, **config)
    assert run.float8 == recipe
    assert run.model is not None and plain.model is not None
    (block,) = run.model.blocks
    assert saved_bytes(run, block) == saved_bytes(plain, block)
    cast = backward_peak_bytes(run, block) - backward_peak_bytes(plain, block)
    assert cast == 3072 * 8192 + width * 8192 * run.tokens


def test_fp8_has_a_verdict_and_adapters_in_it_have_none():
    found = estimate(opened(fp8=True))
    assert found is not None
    assert found.uncounted == ()
    lora = {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_linear": True}
    found = estimate(opened(fp8=True, **lora))
    assert found is not None
    assert [one.key for one in found.uncounted] == ["fp8"]
