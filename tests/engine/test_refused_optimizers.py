"""What a rule says of optimizers that FSDP2 stops at the first step: no validator refuses them, so no example can."""

from collections.abc import Callable

import pytest

from advisor import Set
from advisor.engine.registry import built_in_rules
from advisor.run import Run

CONFIG = """
base_model: meta-llama/Llama-3.1-8B
optimizer: {optimizer}
fsdp_version: 2
fsdp_config:
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
"""


@pytest.mark.parametrize(
    ("optimizer", "gpus", "instead"),
    [
        ("paged_adamw_8bit", "2x rtx-4090", "adamw_torch_8bit"),
        ("paged_adamw_8bit", "8x a100-80gb", "adamw_torch_fused"),
        ("lion_8bit", "2x rtx-4090", None),
        ("lion_8bit", "8x a100-80gb", None),
    ],
)
def test_only_adamw_is_replaced_by_another_adamw(
    make_run: Callable[..., Run], optimizer: str, gpus: str, instead: str | None
):
    (hit,) = built_in_rules("lint")["eight-bit-optimizer-with-fsdp2"].finds(
        make_run(CONFIG.format(optimizer=optimizer), gpus)
    )
    assert "stops FSDP2 at the first step" in hit.message
    assert list(hit.edits) == ([Set("optimizer", instead)] if instead else [])
