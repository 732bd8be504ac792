"""From a model's config to its inventory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from advisor.errors import InputError
from advisor.models.architecture import Architecture
from advisor.models.config import Config
from advisor.models.family import UNKNOWN, family_of
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.decoder import Decoder, Text
    from advisor.models.layout import Layout
    from advisor.models.multimodal import Multimodal


def describe(config: Mapping[str, object], name: str, source: str, *, text_only: bool = False) -> Architecture:
    """The inventory of the model that ``config`` (a config.json) describes.

    ``text_only`` leaves out the towers of those multimodal models of which AutoModelForCausalLM loads the
    decoder alone (Llama 4, Llama 3.2 Vision, Qwen3.5: modeling_auto.py@transformers 5.16.1); others load
    whole anyway. Raises ``InputError`` for a model type that is not in the tables, and for a config that
    lacks what counting needs.
    """
    from advisor.models.decoder import Decoder

    c = Config(config, str(config.get("model_type") or ""), name)
    try:
        layout = _layout_of(c, c.model_type)
        found = (
            alone(c, layout, source)
            if isinstance(layout, Decoder)
            else joined(c, cast("Multimodal", layout), source, text_only)
        )
        return whole(found)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"config of {name} ({c.model_type}) cannot be counted: {error!r}") from error


def whole(found: Architecture) -> Architecture:
    """The architecture, if it has layers and no weight is empty."""
    empty = next((tensor.name for tensor in found.tensors if 0 in tensor.shape), None)
    if empty or not found.blocks:
        raise ValueError(f"{empty} is empty" if empty else "there are no layers")
    return found


def alone(c: Config, decoder: Decoder, source: str) -> Architecture:
    """A model that is a decoder and nothing else."""
    from advisor.models.decoder import assemble

    tied = c.flag("tie_word_embeddings", True)
    return architecture(c, c, decoder, assemble(decoder, c, tied), tied, source)


def joined(c: Config, layout: Multimodal, source: str, text_only: bool) -> Architecture:
    """A decoder with towers. Older configs keep the decoder's keys at the top, next to ``vision_config``."""
    from advisor.models.decoder import Decoder, assemble
    from advisor.models.multimodal import encoders, parts
    from advisor.models.parts import merged

    text = c.section("text_config", layout.text) or Config(c.values, layout.text, c.name)
    decoder = _layout_of(c, text.model_type)
    if not isinstance(decoder, Decoder):
        raise unknown(c, text.model_type)
    tied = layout.ties and _head_tied(c, text)
    if text_only and layout.text_class:
        model = architecture(c, text, decoder, assemble(decoder, text, tied), tied, source)
        return replace(model, class_name=layout.text_class)
    counted = assemble(decoder, text, tied, layout.prefix, layout.head_prefix)
    towers = merged(parts(layout, c, text))
    model = architecture(c, text, decoder, replace(counted, tensors=(*towers, *counted.tensors)), tied, source)
    return replace(model, towers=encoders(layout, c, text))


def _head_tied(c: Config, text: Config) -> bool:
    """What the outer config says, else the decoder's, else the class default."""
    said = (section.given("tie_word_embeddings") for section in (c, text))
    return bool(next((value for value in said if value is not None), c.flag("tie_word_embeddings", True)))


def _layout_of(c: Config, model_type: str) -> Layout:
    """How a model type is counted, or ``InputError``."""
    family = family_of(model_type)
    if family is None or family.layout is None:
        raise unknown(c, model_type)
    return family.layout


def unknown(c: Config, model_type: str) -> InputError:
    """A model type that no table counts."""
    what = f"unknown model type {model_type!r}" if model_type else "the config names no model_type"
    return InputError(f"{c.name}: {what}")


def architecture(c: Config, inner: Config, decoder: Decoder, text: Text, tied: bool, source: str) -> Architecture:
    """The whole answer, from the outer config and the decoder's."""
    return Architecture(
        name=c.name,
        model_type=c.model_type,
        hidden_size=inner.hidden,
        vocab_size=inner.size("vocab_size"),
        tied=tied,
        tensors=text.tensors,
        blocks=text.blocks,
        order=text.order,
        max_position_embeddings=inner.maybe("max_position_embeddings"),
        class_name=(c.strings("architectures") or [""])[0],
        dtype=str(c.given("dtype") or inner.given("dtype") or "bfloat16").removeprefix("torch."),
        quantized=quantization(c),
        source=source,
        supports_flash_attention=(family_of(inner.model_type) or UNKNOWN).flash_attention,
        extra=decoder.extra,
        decoder_type=inner.model_type,
    )


def quantization(c: Config) -> str | None:
    """The method in which the checkpoint is stored quantized, from ``quantization_config``."""
    value = c.get("quantization_config")
    if not isinstance(value, Mapping):
        return None
    settings = cast("Mapping[str, object]", value)
    return str(settings.get("quant_method") or "bitsandbytes")
