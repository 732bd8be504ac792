# pyright: basic
"""DoRA without axolotl's kernels against traces of PEFT's own layers."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from advisor.memory import activations
from advisor.tracing.allocations import belongs, layer_working

from .families import FAMILIES, described, run_of
from .trace import Setting, trace

pytestmark = pytest.mark.oracle

DORA = Setting(adapter="all-linear", dora=True)
SETTINGS = {
    "fp32": DORA,
    "fp32, dropout": replace(DORA, dropout=0.1),
    "bf16": replace(DORA, autocast=False, adapter_fp32=False),
}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", ["mistral", "qwen3"])
def test_a_layer_keeps_what_the_trace_keeps(name: str, setting: Setting):
    model = described(FAMILIES[name])
    run, found = run_of(model, setting), trace(FAMILIES[name](3), setting)
    start, end = found.marks["forward 1"], found.marks["forward end 1"]
    # The norm's own graph is saved too, and goes before the layer ends.
    lasting = [one for one in found.saved() if belongs(one, 1, start, end) and (one.died or end) >= end]
    # Magnitudes, a number for each output, are not counted.
    kept = activations.saved_bytes(run, model.blocks[0])
    assert kept == pytest.approx(sum(one.bytes for one in lasting), rel=0.01)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_recomputing_a_layer_holds_a_merged_weight_for_a_moment(setting: Setting):
    setting, length = replace(setting, checkpointing="reentrant"), 16
    model = described(FAMILIES["mistral"])
    run, block = run_of(model, setting, length=length), model.blocks[0]
    found = layer_working(trace(FAMILIES["mistral"](3), setting, length=length), 1)
    # What dropout keeps of the last weight comes after that moment.
    assert activations.saved_bytes(run, block) + activations.backward_peak_bytes(run, block) == pytest.approx(
        found, rel=0.12
    )
