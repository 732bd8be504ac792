# pyright: basic
"""Liger's fused layers against traces: what they keep, with kernels that launch nothing."""

from dataclasses import replace
from importlib.util import find_spec
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")
if find_spec("liger_kernel") is None or find_spec("triton") is not None:
    pytest.skip("needs liger-kernel, and no Triton", allow_module_level=True)

from advisor.memory import activations, loss  # noqa: E402
from advisor.tracing.allocations import Trace, layer_saved, layer_working  # noqa: E402
from advisor.tracing.recorder import Recorder  # noqa: E402

from .families import FAMILIES, described, run_of  # noqa: E402
from .no_triton import without_triton  # noqa: E402
from .trace import Setting, trace  # noqa: E402

with without_triton():
    from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

pytestmark = pytest.mark.oracle


def fused_norms(model):
    def fused(norm):
        return lambda x: LigerRMSNormFunction.apply(x, norm.weight, norm.variance_epsilon, 0.0, "llama", True, None)

    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = fused(module)


def fused_glu(model):
    def fused(mlp):
        return lambda x: mlp.down_proj(LigerSiLUMulFunction.apply(mlp.gate_proj(x), mlp.up_proj(x)))

    for module in model.modules():
        if type(module).__name__.endswith("MLP"):
            module.forward = fused(module)


LAYERS = {"rms_norm": fused_norms, "glu": fused_glu}
SETTINGS = {
    "full": Setting(),
    "LoRA, bf16, dropout": Setting(adapter="all-linear", dropout=0.1, autocast=False, adapter_fp32=False),
    "LoRA on queries and values": Setting(adapter=("q_proj", "v_proj")),
}


@pytest.mark.parametrize("name", ["mistral", "qwen3"])
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("case", SETTINGS)
def test_fused_layers_keep_and_hold_what_the_trace_does(name, layer, case):
    setting = replace(SETTINGS[case], prepare=LAYERS[layer])
    model = described(FAMILIES[name])
    run = run_of(model, setting, liger=frozenset({layer}))
    result = trace(FAMILIES[name](3), setting)
    assert activations.saved_bytes(run, model.blocks[0]) == layer_saved(result, 1)
    assert activations.backward_peak_bytes(run, model.blocks[0]) == layer_working(result, 1)


VOCABULARY, LENGTH = 4096, 1024


def large_vocabulary(layers):
    config = FAMILIES["llama"](layers)
    config.vocab_size = VOCABULARY
    return config


def fused_loss(model, tokens):
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = base.model(input_ids=tokens).last_hidden_state
    flat = hidden.view(-1, hidden.shape[-1])
    return LigerFusedLinearCrossEntropyFunction.apply(flat, base.lm_head.weight, tokens.view(-1))[0]


@pytest.mark.parametrize("adapter", [None, ("q_proj",)], ids=["full", "LoRA"])
def test_the_fused_loss_keeps_gradients_and_works_in_chunks(adapter):
    setting = Setting(adapter=adapter, loss=fused_loss)
    model = described(large_vocabulary)
    run = run_of(model, setting, length=LENGTH, loss="liger-fused")
    # Values that decide nothing about memory are asked of tensors that have none.
    values = mock.patch.object(torch.Tensor, "item", lambda _tensor: LENGTH)
    equality = mock.patch.object(torch, "equal", lambda _one, _other: True)
    with values, equality:
        result = trace(large_vocabulary(3), setting, length=LENGTH)
    after_layers, end = result.marks["forward end 2"], result.marks["forward done"]
    kept = activations.head_saved_bytes(run, model) + loss.loss_saved_bytes(run, model)
    layers = sum(layer_saved(result, index) for index in range(3))
    labels = 8 * LENGTH
    assert result.saved_bytes - layers == pytest.approx(kept - labels, abs=128)
    if adapter is None:
        when, total = result.peak_moment(after_layers, end)
        living = [one for one in result.activations() if one.died is None or one.died > when]
        before = sum(one.bytes for one in living if one.born <= after_layers)
        final_norm = LENGTH * (192 * (4 + 2 + 2) + 4)
        # The trace leaves out what ends as a weight's gradient.
        head_gradient = 2 * VOCABULARY * 192
        statistics = total + head_gradient - before - final_norm - loss.loss_forward_peak_bytes(run, model)
        assert 0 <= statistics <= 16 * LENGTH


def test_the_loss_of_policies_takes_whole_gradients_of_a_frozen_head():
    vocabulary, hidden, rows, answer = 50_000, 512, 4, 256
    result = Trace()
    recorder = Recorder(result)
    head = torch.zeros(vocabulary, hidden, dtype=torch.bfloat16)
    states = torch.zeros(rows, answer, hidden, dtype=torch.bfloat16, requires_grad=True)
    recorder.weights |= {one.untyped_storage()._cdata for one in (head, states)}
    criterion = LigerFusedLinearGRPOLoss(beta=0.0, compiled=False, use_ref_model=False)
    answers = torch.zeros(rows, answer, dtype=torch.long)
    with recorder:
        recorder.mark("start")
        found, _ = criterion(states, head, answers, torch.ones(rows, answer), torch.ones(rows))
        recorder.mark("forward")
        (found / 4).backward()
        recorder.mark("done")
    elements = vocabulary * hidden
    kept = 2 * rows * answer * hidden + 2 * elements
    forward = result.peak(result.marks["start"], result.marks["forward"])
    assert forward == pytest.approx(kept + 6 * elements + 4 * answer * hidden, rel=0.005)
    assert result.peak(result.marks["forward"], result.marks["done"]) == pytest.approx(2 * kept, rel=0.005)
