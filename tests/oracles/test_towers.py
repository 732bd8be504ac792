# pyright: basic
"""The formulas for the layers of towers against traces of the real encoders."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers.modeling_layers import GradientCheckpointingLayer  # noqa: E402

from advisor.memory.towers import at_tower, kept_bytes, tower_backward_peak_bytes  # noqa: E402
from advisor.run import Images, Lora, Run  # noqa: E402
from advisor.run.stack import Stack  # noqa: E402
from advisor.tracing.allocations import layer_saved, layer_working  # noqa: E402

from .towers import TOWERS, WHOLE, known, traced  # noqa: E402
from .trace import decoder_layers  # noqa: E402

pytestmark = pytest.mark.oracle

CASES = [(autocast, trained) for autocast in (True, False) for trained in (True, False)]
IDS = [f"{'autocast' if autocast else 'engine'}, {'trained' if trained else 'frozen'}" for autocast, trained in CASES]


def run_of(*, autocast: bool, trained: bool) -> Run:
    return Run(
        config={},  # pyright: ignore[reportArgumentType]
        deepspeed=None,
        model=None,
        hardware=None,
        stack=Stack(),
        autocast=autocast,
        adapter=None if trained else "lora",
        lora=None if trained else Lora(rank=8, alpha=16, dropout=0.0, targets=("nowhere",)),
        images=Images(1, 128, 128, "--images"),
    )


@pytest.mark.parametrize(("autocast", "trained"), CASES, ids=IDS)
@pytest.mark.parametrize("name", TOWERS)
def test_a_layer_of_a_tower_keeps_and_holds_what_the_trace_does(name: str, autocast: bool, trained: bool):
    found: Any = traced(name, autocast=autocast, trained=trained)
    tower = known(name)
    run = at_tower(run_of(autocast=autocast, trained=trained), tower)
    # A gate is one number, of which the trace keeps the hyperbolic tangent; what was traced is in whole bytes a token.
    assert kept_bytes(run, tower) == pytest.approx(layer_saved(found, 1), rel=1e-5, abs=4)
    # Llama 4's rotates with complex numbers, whose moments are not followed.
    working = pytest.approx(layer_working(found, 1), rel=0.05 if name == "llama4" else 0.02)
    assert tower_backward_peak_bytes(run, tower) == working


@pytest.mark.parametrize("name", WHOLE)
def test_adapters_reach_the_input_of_a_tower_whose_embedding_transformers_finds(name: str):
    with torch.device("meta"):
        model: Any = WHOLE[name]()
    model.enable_input_require_grads()
    assert bool(model._require_grads_hooks) == known(name).hooked


@pytest.mark.parametrize("name", WHOLE)
def test_gradient_checkpointing_reaches_every_layer_of_a_tower(name: str):
    with torch.device("meta"):
        model: Any = WHOLE[name]()
    last = name == "mllama's gated layers"
    layers = getattr(model, "blocks", None) or decoder_layers(model.global_transformer if last else model)
    assert len(layers) == known(name).block.count
    assert all(isinstance(layer, GradientCheckpointingLayer) == known(name).checkpointed for layer in layers)
