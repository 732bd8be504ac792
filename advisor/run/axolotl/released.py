"""Checkpoints that are quantized as released: MXFP4 (gpt-oss) and block-wise FP8 (DeepSeek, Qwen)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.hardware import Hardware

if TYPE_CHECKING:
    from advisor.models import Architecture
    from advisor.run import Run
    from advisor.run.axolotl.reader import Source

CLASSES = {"mxfp4": "Mxfp4Config", "fp8": "FineGrainedFP8Config"}
"""transformers' class for each, by which ``model_quantization_config`` names it."""
LEAST = {"mxfp4": (7, 5), "fp8": (8, 9)}
"""The compute capability below which transformers turns the weights to bf16 by itself.

transformers/quantizers/quantizer_mxfp4.py, quantizer_finegrained_fp8.py: validate_environment@5.16.1.
"""


def stays_packed(config: Source, checkpoint: str | None, hardware: Hardware | None) -> bool:
    """Whether weights stay as they are stored: neither the YAML nor the card has them turned to bf16.

    axolotl/loaders/model.py:750-768@0.19.0: the options count only next to the name of the class.
    """
    if checkpoint not in CLASSES:
        return True
    named = config.at("model_quantization_config") == CLASSES[checkpoint]
    if named and config.at("model_quantization_config_kwargs.dequantize") is True:
        return False
    capability = None if hardware is None else hardware.gpu.compute_capability
    return capability is None or capability >= LEAST[checkpoint]


def loads_through_quantizer(run: Run) -> bool:
    """Whether transformers loads the weights through a quantizer, if only to turn them to bf16.

    It leaves out ``zero.Init`` then: modeling_utils.py, get_init_context@5.16.1.
    """
    stored = None if run.model is None else run.model.quantized
    return stored in CLASSES or bool(run.config.get("model_quantization_config"))


def is_sure(model: Architecture) -> bool:
    """Whether the method is known, and not guessed by the ending of a name that others than the model's makers use."""
    makers = ("qwen/", "deepseek-ai/", "openai/")
    return model.name.lower().startswith(makers) or not any("by its name" in fact for fact in model.extra)
