"""Whether packed samples see each other, in transformers and as axolotl patches it."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from advisor.models.layer_classes import layer_classes

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.oracle

SMALL = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}
KINDS: Mapping[str, tuple[dict[str, Any], str, bool]] = {
    "llama": ({"num_hidden_layers": 2}, "sdpa", False),
    "qwen3": ({"num_hidden_layers": 2, "head_dim": 16}, "sdpa", False),
    "opt": ({"num_hidden_layers": 2, "ffn_dim": 64, "word_embed_proj_dim": 64}, "sdpa", True),
    "mamba": ({"num_hidden_layers": 2, "state_size": 8, "time_step_rank": 8, "expand": 2}, "eager", True),
    "jamba": (
        {
            "num_hidden_layers": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "mamba_d_state": 8,
            "use_mamba_kernels": False,
        },
        "eager",
        True,
    ),
    "gpt_oss": (
        {"num_hidden_layers": 2, "head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1},
        "eager",
        True,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_of_the_table_mixes_and_others_do_not(kind: str):
    more, attention, mixes = KINDS[kind]
    config = transformers.AutoConfig.for_model(kind, **SMALL, **more)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval().float()
    torch.manual_seed(1)
    one = torch.randint(3, 60, (1, 24))
    other = one.clone()
    other[0, :12] = torch.randint(3, 60, (12,))
    positions = torch.tensor([[*range(12), *range(12)]])
    taken = {} if kind == "mamba" else {"position_ids": positions}
    with torch.no_grad():
        first, second = (model(input_ids=rows, use_cache=False, **taken).logits[:, 12:] for rows in (one, other))
    assert bool((first - second).abs().max() > 1e-4) is mixes


def test_the_patch_for_granites_hybrids_asks_for_a_function_that_is_gone():
    name = "axolotl.monkeypatch.models.granitemoehybrid.modeling"
    if importlib.util.find_spec("axolotl") is None:
        pytest.skip("axolotl is not installed")
    patch = importlib.import_module(name).patch_granitemoehybrid_modeling_packing
    with pytest.raises(AttributeError, match="cuda_kernels_forward"):
        patch()


def test_the_classes_of_layers_are_in_the_modeling_files():
    texts = "".join(
        file.read_text(encoding="utf-8") for file in Path(transformers.__file__).parent.glob("models/*/modeling_*.py")
    )
    assert [name for name in layer_classes() if f"class {name}(" not in texts] == []
