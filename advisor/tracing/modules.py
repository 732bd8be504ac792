# pyright: basic, reportMissingImports=false
"""From a config to the real model, on the meta device and without code from elsewhere."""

from collections.abc import Mapping
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto

from advisor.models.traced import Facts
from advisor.tracing.cuda_emulation import stand_in

NOT_STRUCTURE = ("auto_map", "quantization_config", "dtype", "torch_dtype", "transformers_version")
MOST_LAYERS = 10_000
FLASH = "flash_attention_2"


class UntraceableError(Exception):
    """Why this config cannot be traced, as a clause."""


def config_from(values: Mapping[str, Any]) -> Any:
    """The config as its own class reads it. Code that a config points to (``auto_map``) is never loaded."""
    model_type = str(values.get("model_type") or "")
    if not model_type:
        raise UntraceableError("the config names no model_type")
    if model_type not in transformers.CONFIG_MAPPING:
        if values.get("auto_map"):
            raise UntraceableError(
                f"{model_type!r} needs code from its repository (trust_remote_code), which is never run"
            )
        raise UntraceableError(f"transformers {transformers.__version__} has no model type {model_type!r} either")
    kept = {name: value for name, value in values.items() if name not in (*NOT_STRUCTURE, "model_type")}
    config = transformers.AutoConfig.for_model(model_type, **kept)
    decoder = config.get_text_config()
    if (getattr(decoder, "num_hidden_layers", None) or 0) > MOST_LAYERS:
        raise UntraceableError(f"the config has {decoder.num_hidden_layers} layers")
    config.use_cache = decoder.use_cache = False
    if decoder is not config:
        _with_sections(decoder)
    return config


def _with_sections(decoder: Any) -> None:
    """Thirds of the rotary width for time, height and width, where a shortened config does not say: any are as wide."""
    rope = getattr(decoder, "rope_parameters", None)
    if not isinstance(rope, dict) or "mrope_section" in rope or "rope_theta" not in rope:
        return
    head = getattr(decoder, "head_dim", None) or decoder.hidden_size // decoder.num_attention_heads
    half = int(head * rope.get("partial_rotary_factor", 1.0)) // 2
    third = half * 3 // 8
    rope["mrope_section"] = [half - 2 * third, third, third]


def class_for(config: Any) -> Any:
    """The class that AutoModelForCausalLM loads; for a decoder with towers, the joint one."""
    causal, joint = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING, modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    for mapping in (joint, causal) if getattr(config, "text_config", None) is not None else (causal, joint):
        if type(config) in mapping:
            return mapping[type(config)]
    raise UntraceableError(f"transformers has no causal language model of type {config.model_type!r}")


def built(values: Mapping[str, Any], facts: Facts) -> Any:
    """The model on meta tensors, with the attention of ``facts`` where the class has it."""
    config = config_from(values)
    made = class_for(config)
    weights = torch.float32 if facts.single or facts.fp32_weights else torch.bfloat16
    first = "eager" if facts.attention == "eager" or not made._supports_sdpa else "sdpa"
    with torch.device("meta"):
        model = made._from_config(config, attn_implementation=first, dtype=weights)
    model.tie_weights()
    if facts.attention == "flash" and made._supports_flash_attn:
        model.config._attn_implementation = FLASH
    for weight in model.parameters():
        weight.requires_grad_(facts.adapter is None)
    return model.train()


def flash(_module: Any, query: Any, key: Any, value: Any, _mask: Any = None, **_options: Any) -> tuple[Any, None]:
    """What FlashAttention keeps: queries, keys, values, output and one fp32 number a head and token.

    Values that are narrower than keys are padded for it: integrations/flash_attention.py:60-64@5.16.1.
    """
    width = value.shape[-1]
    if width != key.shape[-1]:
        value = torch.nn.functional.pad(value, [0, key.shape[-1] - width])
    return stand_in(query, key, value).transpose(1, 2)[..., :width], None


def widened(model: Any) -> None:
    """Turns embeddings, norms and head to fp32."""
    ends = {id(model.get_input_embeddings()), id(model.get_output_embeddings())}
    for module in model.modules():
        if id(module) in ends or "Norm" in type(module).__name__:
            for weight in module.parameters(recurse=False):
                weight.data = weight.data.float()


def decoder_layers(model: Any) -> torch.nn.ModuleList:
    """The list of decoder layers, under whatever name the family gives it."""
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    if not lists:
        raise UntraceableError(f"{type(model).__name__} has no list of layers")
    return max(lists, key=lambda one: sum(weight.numel() for weight in one.parameters()))
