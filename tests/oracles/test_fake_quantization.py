# pyright: basic, reportMissingImports=false
"""Quantization-aware training: what torchao's modules keep, as axolotl puts them in."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchao")
pytest.importorskip("axolotl")

from advisor.memory import activations  # noqa: E402
from advisor.memory.activations.fake_quantized import STEPS  # noqa: E402
from advisor.run import FakeQuantization  # noqa: E402
from advisor.tracing.allocations import belongs  # noqa: E402

from .families import described, family, run_of  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

LAYERS, LENGTH, GROUP = 3, 1024, 128
WIDTHS = {"hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1536}
TRACED = [pair for pair in STEPS if not {"nvfp4", "mxfp4"} & set(pair)]
make = family("LlamaConfig", **WIDTHS)


def prepared(weight: str, inputs: str):
    from axolotl.utils.quantization import TorchAOQuantDType, prepare_model_for_qat

    def prepare(model):
        kinds = [TorchAOQuantDType.from_string(one) if one else None for one in (weight, inputs)]
        prepare_model_for_qat(model, kinds[0], GROUP, kinds[1])

    return prepare


def kept(found, index):
    """Bytes of a layer that are still there when its forward is over, its input and the casts of weights included."""
    before, after = found.marks[f"forward {index}"], found.marks[f"forward end {index}"]
    return sum(s.bytes for s in found.storages if s.saved and lasts(s, after) and belongs(s, index, before, after))


def lasts(storage, moment):
    return storage.born <= moment and (storage.died is None or storage.died > moment)


def held(found, index):
    """The most bytes in a layer's backward beyond what it and the layers before it have kept."""
    start, end = found.marks[f"backward end {index + 1}"], found.marks[f"backward end {index}"]
    times = sorted({s.born for s in found.storages if start <= s.born <= end} | {start})
    live = [sum(s.bytes for s in found.storages if not s.gradient and lasts(s, moment)) for moment in times]
    return max(live) - sum(kept(found, one) for one in range(index + 1))


@pytest.mark.parametrize("pair", TRACED, ids=lambda pair: "-".join(pair))
def test_a_layer_keeps_the_steps_of_its_quantizers(pair):
    setting = Setting(attention="sdpa", prepare=prepared(*pair))
    found, model = trace(make(LAYERS), setting, length=LENGTH), described(make, LAYERS)
    run = run_of(model, setting, length=LENGTH, fake_quantization=FakeQuantization(*pair, GROUP))
    (block,) = model.blocks
    saved, working = activations.saved_bytes(run, block), activations.backward_peak_bytes(run, block)
    assert saved == pytest.approx(kept(found, 1), rel=0.02)
    assert saved + working == pytest.approx(kept(found, 1) + held(found, 1), rel=0.04)
