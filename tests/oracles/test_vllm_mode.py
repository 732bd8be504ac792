# pyright: basic
"""Where GRPO's vLLM runs and what it takes, as axolotl's own schema fills it in."""

import pytest

from advisor.opening import open_configs
from advisor.run.answers import Rollouts

pytestmark = pytest.mark.oracle
pydantic = pytest.importorskip("pydantic")
schemas = pytest.importorskip("axolotl.utils.schemas.validation")
of_trl = pytest.importorskip("axolotl.utils.schemas.trl").TRLConfig
of_vllm = pytest.importorskip("axolotl.utils.schemas.vllm").VllmConfig
# The part of axolotl's config that says where answers are made.
FILLED = pydantic.create_model("Filled", __base__=(schemas.GRPOVllmValidationMixin, pydantic.BaseModel), trl=of_trl)


def rollouts(trl_keys: dict) -> Rollouts:
    keys = {
        "base_model": "Qwen/Qwen2.5-0.5B",
        "rl": "grpo",
        "sequence_len": 512,
        "micro_batch_size": 1,
        "trl": trl_keys,
    }
    found = open_configs(keys, None, "2x a100-80gb", None).run.rollouts
    assert found is not None
    return found


@pytest.mark.parametrize("mode", [None, "server", "colocate"])
def test_answers_are_made_where_axolotl_has_them_made(mode: str | None):
    keys = {"use_vllm": True} | ({"vllm_mode": mode} if mode else {})
    filled = FILLED.model_validate({"trl": keys})
    made_by = {"server": "server", "colocate": "vllm"}[filled.trl.vllm_mode]
    assert rollouts(keys).engine == made_by


def test_without_a_share_vllm_takes_what_axolotl_hands_it():
    default = of_vllm.model_fields["gpu_memory_utilization"].default
    assert rollouts({"use_vllm": True, "vllm_mode": "colocate"}).share == default
