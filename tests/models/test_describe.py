"""From a config to an inventory: what is read, what is refused, what is not guessed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.models import catalogue, describe

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "max_position_embeddings": 512,
}


@given(
    heads=st.integers(1, 16),
    groups=st.integers(1, 4),
    head_dim=st.integers(1, 64),
    width=st.integers(1, 500),
    layers=st.integers(1, 20),
    vocabulary=st.integers(1, 1000),
    tied=st.booleans(),
    bias=st.booleans(),
)
def test_llama_has_the_parameters_of_its_closed_form(
    heads: int, groups: int, head_dim: int, width: int, layers: int, vocabulary: int, tied: bool, bias: bool
) -> None:
    hidden, kv = heads * groups * head_dim, heads * head_dim
    config = LLAMA | {
        "hidden_size": hidden,
        "num_attention_heads": heads * groups,
        "num_key_value_heads": heads,
        "intermediate_size": width,
        "num_hidden_layers": layers,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        "attention_bias": bias,
    }
    layer = 2 * hidden**2 + 2 * hidden * kv + 3 * hidden * width + 2 * hidden + bias * (2 * hidden + 2 * kv)

    model = describe(config, "x", "test")

    assert model.parameters == layers * layer + (1 if tied else 2) * vocabulary * hidden + hidden
    assert model.layers == layers
    assert model.largest_tensor == max(vocabulary * hidden, hidden * width, hidden**2)


ENTRIES = list(catalogue.entries())
VARIANTS = [json.loads(line) for line in Path(__file__).with_name("variants.jsonl").read_text().splitlines()]
"""Small configs off the beaten track, with the parameters that transformers 5.16.1 gives them."""


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["config"]["model_type"])
def test_small_variant_has_the_parameters_of_transformers(variant: dict[str, Any]) -> None:
    assert describe(variant["config"], "variant", "test").parameters == variant["parameters"]


def test_facts_next_to_the_count_come_from_the_config() -> None:
    model = describe(LLAMA, "org/model", "somewhere")

    assert (model.name, model.source, model.model_type) == ("org/model", "somewhere", "llama")
    assert (model.class_name, model.dtype, model.max_position_embeddings) == (
        "LlamaForCausalLM",
        "float16",
        512,
    )
    assert (model.hidden_size, model.vocab_size, model.tied, model.quantized) == (64, 100, False, None)


@pytest.mark.parametrize(
    ("quantization", "method"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        ({"load_in_4bit": True}, "bitsandbytes"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        (None, None),
    ],
)
def test_quantized_checkpoints_are_named(quantization: object, method: str | None) -> None:
    assert describe(LLAMA | {"quantization_config": quantization}, "x", "test").quantized == method


def test_tied_head_is_not_counted_twice() -> None:
    tied = describe(LLAMA | {"tie_word_embeddings": True}, "x", "test")

    assert "head" not in tied.by_kind
    assert describe(LLAMA, "x", "test").parameters - tied.parameters == 100 * 64


@pytest.mark.parametrize("model_type", ["futuristic", "", "llama2", "LLAMA"])
def test_unknown_type_is_refused_even_if_it_looks_like_llama(model_type: str) -> None:
    with pytest.raises(InputError, match=r"model type|model_type"):
        describe(LLAMA | {"model_type": model_type}, "x", "test")


@pytest.mark.parametrize("value", ["64", 64.5, -1, True, [64]])
def test_width_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="hidden_size"):
        describe(LLAMA | {"hidden_size": value}, "x", "test")


@pytest.mark.slow
@given(data=st.data())
def test_damaged_config_is_counted_or_refused(data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from(ENTRIES))
    config = dict(entry["config"])
    key = data.draw(st.sampled_from(sorted(set(config) - {"model_type"})))
    junk = st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=3)
    config[key] = data.draw(junk | st.lists(junk, max_size=3) | st.dictionaries(st.sampled_from(sorted(LLAMA)), junk))

    try:
        model = describe(config, "damaged", "test")
    except InputError as error:
        assert "damaged" in error.message
    else:
        assert model.parameters == sum(tensor.elements for tensor in model.tensors) >= 0


def test_missing_width_without_class_default_is_refused() -> None:
    with pytest.raises(InputError, match=r"internlm2.* has no num_hidden_layers"):
        describe({"model_type": "internlm2"}, "x", "test")


def test_absent_keys_have_the_defaults_of_the_config_class() -> None:
    short = {key: value for key, value in LLAMA.items() if key not in {"vocab_size", "tie_word_embeddings"}}

    model = describe(short, "x", "test")

    assert model.vocab_size == 32000 and not model.tied


def test_null_key_is_not_replaced_by_the_class_default() -> None:
    mistral = LLAMA | {"model_type": "mistral", "sliding_window": None}
    attention = describe(mistral, "x", "test").blocks[0].attention
    default = describe({k: v for k, v in mistral.items() if k != "sliding_window"}, "x", "test").blocks[0].attention

    assert attention is not None and attention.window is None
    assert default is not None and default.window == 4096


def test_layer_list_follows_an_overridden_number_of_layers() -> None:
    config = LLAMA | {
        "model_type": "gemma3_text",
        "head_dim": 8,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "num_hidden_layers": 2,
    }

    assert describe(config, "x", "test").layers == 2
    assert describe(config | {"num_hidden_layers": 12}, "x", "test").layers == 12


def test_older_vision_config_with_flat_decoder_keys_is_read() -> None:
    vision = {
        "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64,
        "patch_size": 14, "in_channels": 3, "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    flat = LLAMA | {"model_type": "qwen2_5_vl", "vision_config": vision}
    decoder = {key: value for key, value in LLAMA.items() if key != "model_type"}
    nested = {"model_type": "qwen2_5_vl", "vision_config": vision, "text_config": decoder}

    model = describe(flat, "x", "test")

    assert model.tensors == describe(nested, "x", "test").tensors
    assert model.by_kind["vision"] > 0
    assert any(tensor.name.startswith("model.language_model.layers.") for tensor in model.tensors)


def test_tower_of_unknown_type_is_refused() -> None:
    config = {
        "model_type": "llava",
        "text_config": LLAMA,
        "vision_config": {"model_type": "eyes", "hidden_size": 8},
    }

    with pytest.raises(InputError, match="eyes"):
        describe(config, "x", "test")


def test_kimi_release_config_counts_like_the_transformers_one() -> None:
    common: dict[str, Any] = LLAMA | {
        "model_type": "kimi_linear", "num_key_value_heads": 8, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 8, "num_experts": 4, "num_experts_per_token": 2,
        "moe_intermediate_size": 16, "num_shared_experts": 1, "first_k_dense_replace": 1,
    }  # fmt: skip
    released = common | {
        "linear_attn_config": {
            "num_heads": 4,
            "head_dim": 16,
            "short_conv_kernel_size": 4,
            "full_attn_layers": [3],
        }
    }
    converted = common | {
        "linear_num_heads": 4,
        "linear_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "linear_attention", "full_attention"],
    }

    assert describe(released, "x", "test").tensors == describe(converted, "x", "test").tensors


@pytest.mark.parametrize(
    ("config", "heads"),
    [
        ({"multi_query": True}, 1),
        ({"multi_query": False}, 8),
        ({"new_decoder_architecture": True, "num_kv_heads": 4}, 4),
    ],
)
def test_falcon_generations_have_their_key_heads(config: dict[str, Any], heads: int) -> None:
    falcon = {
        "model_type": "falcon",
        "hidden_size": 64,
        "num_attention_heads": 8,
        "num_hidden_layers": 1,
        "vocab_size": 9,
    }
    attention = describe(falcon | config, "x", "test").blocks[0].attention

    assert attention is not None and attention.kv_heads == heads
