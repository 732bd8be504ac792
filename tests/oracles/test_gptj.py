# pyright: basic, reportMissingImports=false
"""GPT-J's layers, whose attention has classes of its own, against traces of its modules."""

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from transformers import GPTJConfig  # noqa: E402
from transformers.models.gptj import modeling_gptj  # noqa: E402

from advisor.memory import activations  # noqa: E402
from advisor.models import describe  # noqa: E402
from advisor.tracing.allocations import layer_saved, layer_working  # noqa: E402
from advisor.tracing.cuda_emulation import stand_in  # noqa: E402

from .families import run_of  # noqa: E402
from .four_bit import quantized  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

LENGTH = 1024
CONFIG = GPTJConfig(
    n_embd=768,
    n_head=3,
    n_inner=3072,
    n_layer=3,
    rotary_dim=64,
    vocab_size=64,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    n_positions=LENGTH,
    tie_word_embeddings=False,
)
TARGETS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc_in", "fc_out")
LORA = Setting(attention="eager", adapter=TARGETS)
SETTINGS = {
    "full": Setting(attention="eager"),
    "LoRA": LORA,
    "LoRA, dropout": replace(LORA, dropout=0.1),
    "QLoRA": replace(LORA, casts_inputs=False, prepare=quantized),
}


def with_flash(model: Any) -> None:
    """Puts the class for FlashAttention in the place of the other."""
    for module in model.modules():
        if isinstance(module, modeling_gptj.GPTJAttention):
            module.__class__ = modeling_gptj.GPTJFlashAttention2
            module._flash_attn_uses_top_left_mask = False
    model.config._attn_implementation = "flash_attention_2"


def kernel(query: Any, key: Any, value: Any, *_arguments: Any, **_options: Any) -> Any:
    """What FlashAttention keeps of tensors by position."""
    return stand_in(*(one.transpose(1, 2) for one in (query, key, value))).transpose(1, 2)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("flash", [False, True], ids=["eager", "flash"])
def test_a_layer_keeps_and_holds_what_its_trace_does(setting: Setting, flash: bool):
    model = describe(CONFIG.to_dict(), "gptj", "test")
    run = run_of(model, replace(setting, attention="flash") if flash else setting, length=LENGTH)
    before = setting.prepare or (lambda _model: None)
    traced = replace(setting, prepare=lambda one: (before(one), with_flash(one))) if flash else setting
    with mock.patch.object(modeling_gptj, "_flash_attention_forward", kernel, create=True):
        found = trace(CONFIG, traced, length=LENGTH)
    saved, working = layer_saved(found, 1), layer_working(found, 1)
    block = model.blocks[0]
    kept, held = activations.saved_bytes(run, block), activations.backward_peak_bytes(run, block)
    assert kept == pytest.approx(saved, rel=0.02), activations.saved_formula(run, block)
    assert kept + held == pytest.approx(saved + working, rel=0.02)
