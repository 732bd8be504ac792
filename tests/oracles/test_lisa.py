# pyright: basic
"""LISA's layers at rest, by axolotl's own callback on a small model: no gradients, and states that stay."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("axolotl")

import numpy
import torch
from transformers import AutoModelForCausalLM

from advisor.memory.uncounted import uncounted

from .axolotl_kernels import loaded_alone
from .families import FAMILIES

pytestmark = pytest.mark.oracle

LAYERS, ACTIVE = 4, 2
CONFIG = """\
base_model: meta-llama/Llama-3.2-1B
lisa_n_layers: 2
lisa_step_interval: 1
lisa_layers_attribute: model.layers
"""


def elements(weights) -> int:
    return sum(weight.numel() for weight in weights)


@pytest.fixture
def trained():
    """A model, its optimizer and axolotl's callback, as before the first step: the optimizer has every weight."""
    torch.manual_seed(0)
    numpy.random.seed(0)
    model = AutoModelForCausalLM.from_config(FAMILIES["llama"](LAYERS))
    optimizer = torch.optim.AdamW(weight for weight in model.parameters() if weight.requires_grad)
    asked = SimpleNamespace(lisa_n_layers=ACTIVE, lisa_step_interval=1, lisa_layers_attribute="model.layers")
    trainer = SimpleNamespace(model=model, args=asked)
    return model, optimizer, loaded_alone("axolotl.utils.callbacks", "lisa").lisa_callback_factory(trainer)


def step(model, optimizer, callback, number):
    """One step; the elements that have gradients before they are dropped."""
    callback.on_step_begin(None, SimpleNamespace(global_step=number), None)
    tokens = torch.zeros(1, 8, dtype=torch.long)
    model(input_ids=tokens, labels=tokens).loss.backward()
    made = elements(weight.grad for weight in model.parameters() if weight.grad is not None)
    optimizer.step()
    optimizer.zero_grad()
    return made


def test_layers_at_rest_have_no_gradients(trained):
    model, optimizer, callback = trained
    layer = elements(model.model.layers[0].parameters())
    outside = elements(model.parameters()) - LAYERS * layer
    assert {step(model, optimizer, callback, number) for number in range(5)} == {outside + ACTIVE * layer}
    assert all(weight.grad is None for weight in model.parameters())


def test_states_stay_once_a_layer_has_had_its_turn(trained):
    model, optimizer, callback = trained
    everything, layer = elements(model.parameters()), elements(model.model.layers[0].parameters())
    kept = []
    for number in range(12):
        step(model, optimizer, callback, number)
        kept.append(elements(state["exp_avg"] for state in optimizer.state.values()))
    assert kept[0] == everything - (LAYERS - ACTIVE) * layer
    assert kept == sorted(kept)
    assert kept[-1] == everything


def test_the_estimate_counts_all_states_and_says_that_gradients_may_be_fewer(make_run):
    plain, lisa = make_run(CONFIG.splitlines()[0] + "\n"), make_run(CONFIG)
    assert lisa.optimizer == plain.optimizer
    (one,) = (one for one in uncounted(lisa) if one.key == "lisa_n_layers")
    assert one.memory == "less"
    assert "gradients" in one.what
