# pyright: basic
"""What activation offloading leaves on the card, against axolotl's own contexts over TRL's hooks."""

import importlib.util
import json
from dataclasses import replace
from typing import cast

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from advisor.memory import activations
from advisor.memory.backward import layer_terms
from advisor.memory.host import offloaded_activations
from advisor.memory.offloading import brought_back_terms, inputs_on_the_way
from advisor.run import Offloading, Run

from .axolotl_venv import ROOT, UnavailableError, environment
from .families import FAMILIES, described, run_of
from .offloading_cases import CASES, LAYERS, TOKENS, Case

pytestmark = pytest.mark.oracle

STREAM = 192 * TOKENS
ROTARY = 2 * 2 * TOKENS * 32 + 8 * TOKENS


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, int]]:
    if importlib.util.find_spec("axolotl") is None:
        pytest.skip("axolotl is not installed with these tests")
    try:
        place = environment()
    except UnavailableError as error:
        pytest.skip(f"what axolotl's trainer needs cannot be had: {error}")
    done = place.run(
        str(place.bin / "python"), "-m", "tests.oracles.offloading_worker", folder=ROOT, PYTHONPATH=str(ROOT)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def run_for(case: Case) -> Run:
    """The run, as a config with these keys is read: see tests/run/axolotl for how they decide ``reentrant``."""
    mode = "legacy" if case.keys["activation_offloading"] == "legacy" else "saved-tensors"
    again = case.keys["gradient_checkpointing_kwargs"]["use_reentrant"] and case.setting.adapter is not None
    setting = replace(case.setting, checkpointing="reentrant" if again else "non-reentrant")
    return run_of(described(FAMILIES["llama"], LAYERS), setting, activation_offloading=cast("Offloading", mode))


@pytest.mark.parametrize("name", CASES)
def test_the_forward_holds_the_last_layer_inputs(name: str, found: dict[str, dict[str, int]]):
    run = run_for(CASES[name])
    assert run.model is not None
    least = inputs_on_the_way(run, run.model).bytes
    one = activations.checkpoint_bytes(run, run.model.blocks[0])
    # What the model embedded, and the layer's own output.
    assert least <= found[name]["forward"] <= least + 3 * one + 2 * ROTARY


@pytest.mark.parametrize("name", CASES)
def test_a_layer_in_backward_holds_what_the_trace_does(name: str, found: dict[str, dict[str, int]]):
    run = run_for(CASES[name])
    assert run.model is not None
    block = run.model.blocks[0]
    inputs = inputs_on_the_way(run, run.model, backward=True).bytes
    terms = (*layer_terms(run, block), *brought_back_terms(run, run.model, block))
    counted = inputs + sum(term.bytes for term in terms)
    # Hidden states that the engine and the model hold on the way, whatever is offloaded.
    assert counted == pytest.approx(found[name]["backward"], rel=0.08, abs=3 * 2 * STREAM)


@pytest.mark.parametrize("name", CASES)
def test_the_host_holds_layer_inputs_and_what_is_recomputed_under_the_hooks(
    name: str, found: dict[str, dict[str, int]]
):
    run = run_for(CASES[name])
    assert run.model is not None
    (term,) = offloaded_activations(run, run.model, 1)
    # What lies outside of the layers goes to the host too: the last norm's input and what the loss keeps.
    assert term.bytes == pytest.approx(found[name]["host"], rel=0.05, abs=4 * 4 * STREAM)
