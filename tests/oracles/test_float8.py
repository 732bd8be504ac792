# pyright: basic, reportMissingImports=false
"""Training in fp8: what torchao's linear layers keep and hold, of the recipes that axolotl takes."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchao")

from advisor.memory import activations  # noqa: E402

from .families import described, family, run_of  # noqa: E402
from .test_fake_quantization import held, kept  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

LAYERS = 3
WIDTHS: dict[str, Any] = {
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1536,
}
MAKES = {
    "llama": family("LlamaConfig", **WIDTHS),
    "qwen3": family("Qwen3Config", **WIDTHS | {"head_dim": 96, "intermediate_size": 1024}),
}


def converted(recipe):
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    def prepare(model):
        config = Float8LinearConfig.from_recipe_name(recipe)
        convert_to_float8_training(model, config=config, module_filter_fn=lambda _, name: "lm_head" not in name)

    return prepare


@pytest.mark.parametrize("recipe", ["tensorwise", "rowwise", "rowwise_with_gw_hp"])
@pytest.mark.parametrize("name", MAKES)
def test_a_layer_in_fp8_keeps_what_it_did_and_casts_while_it_goes_back(name, recipe):
    make, setting = MAKES[name], Setting(attention="sdpa", prepare=converted(recipe))
    found, model = trace(make(LAYERS), setting, length=2048), described(make, LAYERS)
    run = run_of(model, setting, length=2048, float8=recipe)
    (block,) = model.blocks
    saved, working = activations.saved_bytes(run, block), activations.backward_peak_bytes(run, block)
    assert saved == kept(found, 1)
    assert saved + working == pytest.approx(kept(found, 1) + held(found, 1), rel=0.03)
