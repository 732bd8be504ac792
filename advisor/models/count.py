"""From a model's config to its inventory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, cast

from advisor.errors import InputError
from advisor.models.architecture import Architecture
from advisor.models.config import Config

if TYPE_CHECKING:
    from advisor.models.family import Family, Text

_HOMES: dict[str, str] = {
    "sparse": (
        "afmoe dots1 ernie4_5_moe exaone_moe flex_olmo glm4_moe glm4v_moe_text gpt_oss granitemoe "
        "granitemoeshared hunyuan_v1_moe minimax_m2 mixtral olmoe phimoe qwen2_moe qwen3_moe "
        "qwen3_vl_moe_text"
    ),
    "classic": "bloom chatglm dbrx falcon gpt2 gpt_bigcode gpt_neo gpt_neox gptj mpt opt qwen",
    "hybrid": (
        "bamba falcon_h1 falcon_mamba granitemoehybrid jamba kimi_linear lfm2 lfm2_moe mamba mamba2 "
        "nemotron_h qwen3_5_moe_text qwen3_5_text qwen3_next"
    ),
    "gemma": "gemma3n_text gemma4_text gemma4_unified_text",
    "deepseek": "deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 glm4_moe_lite glm_moe_dsa kimi_k2 mistral4",
    "llama": "llama4_text mllama_text_model",
    "multimodal": (
        "gemma3 gemma3n gemma4 gemma4_unified glm4v glm4v_moe internvl lfm2_vl llama4 llava "
        "llava_next llava_onevision mistral3 mllama paligemma qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe "
        "qwen3_vl qwen3_vl_moe voxtral"
    ),
}
"""Which module's table holds a model type, so that only that one is loaded; all others are ``dense``."""


def describe(config: Mapping[str, object], name: str, source: str, *, text_only: bool = False) -> Architecture:
    """The inventory of the model that ``config`` (a config.json) describes.

    ``text_only`` leaves out the towers of those multimodal models of which AutoModelForCausalLM loads the
    decoder alone (Llama 4, Llama 3.2 Vision, Qwen3.5: modeling_auto.py@transformers 5.16.1); others load
    whole anyway. Raises ``InputError`` for a model type that is not in the tables, and for a config that
    lacks what counting needs.
    """
    c = Config(config, str(config.get("model_type") or ""), name)
    try:
        found = joined(c, source, text_only) if home(c.model_type) == "multimodal" else alone(c, source)
        return whole(found)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"config of {name} ({c.model_type}) cannot be counted: {error!r}") from error


def whole(found: Architecture) -> Architecture:
    """The architecture, if it has layers and no weight is empty."""
    empty = next((tensor.name for tensor in found.tensors if 0 in tensor.shape), None)
    if empty or not found.blocks:
        raise ValueError(f"{empty} is empty" if empty else "there are no layers")
    return found


def alone(c: Config, source: str) -> Architecture:
    """A model that is a decoder and nothing else."""
    from advisor.models.family import assemble

    family = known(c, c.model_type)
    tied = c.flag("tie_word_embeddings", True)
    return architecture(c, c, family, assemble(family, c, tied), tied, source)


def joined(c: Config, source: str, text_only: bool) -> Architecture:
    """A decoder with towers. Older configs keep the decoder's keys at the top, beside ``vision_config``."""
    from advisor.models.family import Text, assemble
    from advisor.models.multimodal import MULTIMODAL, parts
    from advisor.models.parts import merged

    row = MULTIMODAL[c.model_type]
    text = c.section("text_config", row.text) or Config(c.values, row.text, c.name)
    family = known(c, text.model_type)
    tied = row.ties and head_tied(c, text)
    if text_only and row.text_class:
        model = architecture(c, text, family, assemble(family, text, tied), tied, source)
        return replace(model, class_name=row.text_class)
    decoder = assemble(family, text, tied, row.prefix, row.head_prefix)
    towers = merged(parts(row, c, text))
    return architecture(c, text, family, Text((*towers, *decoder.tensors), decoder.blocks), tied, source)


def head_tied(c: Config, text: Config) -> bool:
    """What the outer config says, else the decoder's, else the class default."""
    said = (section.given("tie_word_embeddings") for section in (c, text))
    return bool(next((value for value in said if value is not None), c.flag("tie_word_embeddings", True)))


def known(c: Config, model_type: str) -> Family:
    """The row of a decoder's type, or ``InputError``."""
    family = family_of(model_type)
    if family is None:
        what = f"model type {model_type!r} is not known" if model_type else "the config names no model_type"
        raise InputError(f"{c.name}: {what}")
    return family


def architecture(c: Config, decoder: Config, family: Family, text: Text, tied: bool, source: str) -> Architecture:
    """The whole answer, from the outer config and the decoder's."""
    return Architecture(
        name=c.name,
        model_type=c.model_type,
        hidden_size=decoder.hidden,
        vocab_size=decoder.size("vocab_size"),
        tied=tied,
        tensors=text.tensors,
        blocks=text.blocks,
        max_position_embeddings=decoder.maybe("max_position_embeddings"),
        class_name=(c.strings("architectures") or [""])[0],
        dtype=str(c.given("dtype") or decoder.given("dtype") or "bfloat16").removeprefix("torch."),
        quantized=quantization(c),
        source=source,
        supports_flash_attention=family.flash_attention,
        extra=family.extra,
    )


def quantization(c: Config) -> str | None:
    """The method in which the checkpoint is stored quantized, from ``quantization_config``."""
    value = c.get("quantization_config")
    if not isinstance(value, Mapping):
        return None
    settings = cast("Mapping[str, object]", value)
    return str(settings.get("quant_method") or "bitsandbytes")


def home(model_type: str) -> str:
    """The module whose table holds a model type."""
    return next((module for module, types in _HOMES.items() if model_type in types.split()), "dense")


def family_of(model_type: str) -> Family | None:
    """The row of a decoder's type; None if no table has it."""
    if home(model_type) == "multimodal":
        return None
    families: dict[str, Family] = import_module(f"advisor.models.{home(model_type)}").FAMILIES
    return families.get(model_type)
