"""What a family's modules do that its widths do not tell: one row each, read from transformers 5.16.1 and
traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.architecture import Block
    from advisor.run import Run


Norm = Literal["rms", "fp32 rms", "offset rms", "layer", "fp32 layer", "half layer", "centred", "liger"]
"""How a norm computes.

``fp32 rms`` multiplies by its weight before it returns to half precision and keeps the fp32 product; ``offset
rms`` does so with 1 + weight, an fp32 vector that it keeps too. ``fp32 layer`` casts by hand and back, ``half
layer`` steps out of autocast, ``centred`` is a layer norm in plain fp32 operations. ``liger`` is Liger's
kernel.
"""


@record(eq=False)
class Family:
    """Deviations from Llama's modules (models/llama/modeling_llama.py@5.16.1)."""

    norm: Norm | None = None
    """None: ``rms`` or ``layer``, as the block says."""
    fresh_query: bool = False
    """Rotary part and rest are concatenated to new queries: the kernel's output follows their layout and is
    copied."""
    wide_query_key_norm: bool = False
    """The norm of queries and keys spans the whole projection, not one head."""
    rotary: int = 0
    """Bytes per token and element of head_dim of cosines and sines that each layer expands for itself."""
    parallel: bool = False
    """Attention and MLP read the same stream, each through a norm of its own."""
    activation: tuple[int, int] = (0, 0)
    """Bytes per element that an activation in plain operations keeps beside its input: without and with
    autocast."""
    residual_masks: int = 0
    """Dropouts on the way back to the residual stream, by the published configs."""
    normalized_routing: bool = False
    """The router divides by the sum of the chosen weights: one sum and one copy a token."""
    fp32_routing: bool = False
    """Routing weights stay fp32."""
    rotates: bool = True
    """False where positions are learned: queries and keys are then cut from the fused projection, with the
    values."""
    always_masked: bool = False
    """The attention mask is materialised in every run."""
    post_norm: bool = False
    """Norms stand at the ends of attention and MLP, not before them."""
    activation_gradient: tuple[int, int] | None = None
    """Bytes per element of the activation's backward at its widest: without and with autocast."""
    activation_forward: tuple[int, int] | None = None
    """Likewise without gradients, the input included."""
    scales_residual: bool = False
    """Attention and MLP are scaled before they join the residual stream, so their gradient is a tensor of its
    own."""
    clamped_experts: bool = False
    """Gate and up are clamped, scaled and shifted in plain operations: models/gpt_oss,
    GptOssExperts._apply_gate."""
    sinks: bool = False
    """One more score a head in eager attention, whose maximum is subtracted by hand: models/gpt_oss."""


_OFFSET = Family(norm="offset rms")
_FRESH_QUERY = Family(fresh_query=True)
_GLM = Family(fresh_query=True, rotary=2)
# NewGELUActivation (activations.py@5.16.1): half the input, tanh, one plus tanh; CUDA's autocast runs pow
# in fp32.
_TANH_GELU = (6, 12)
_TANH_GRADIENT = (6, 14)
_TANH_FORWARD = (8, 12)

FAMILIES: dict[str, Family] = {
    "gemma": _OFFSET,
    "gemma2": _OFFSET,
    "gemma3": _OFFSET,
    "gemma3_text": _OFFSET,
    "olmo": Family(norm="fp32 layer"),
    "olmo2": Family(norm="fp32 rms", wide_query_key_norm=True, post_norm=True),
    "olmo3": Family(norm="fp32 rms", wide_query_key_norm=True, post_norm=True),
    "exaone4": Family(post_norm=True),
    "afmoe": Family(norm="fp32 rms"),
    "gpt_oss": Family(norm="fp32 rms", fresh_query=True, clamped_experts=True, sinks=True),
    "cohere": Family(norm="centred"),
    "cohere2": Family(norm="centred"),
    "phi3": _FRESH_QUERY,
    "stablelm": _FRESH_QUERY,
    "gpt_neox": Family(fresh_query=True, parallel=True),
    "falcon": Family(parallel=True, always_masked=True),
    "glm": _GLM,
    "glm4": _GLM,
    "glm4_moe": _FRESH_QUERY,
    "nemotron": Family(norm="half layer", fresh_query=True, activation_gradient=(8, 8)),
    "phi": Family(
        fresh_query=True,
        activation=_TANH_GELU,
        activation_gradient=_TANH_GRADIENT,
        activation_forward=_TANH_FORWARD,
    ),
    "gpt2": Family(
        activation=_TANH_GELU,
        activation_gradient=_TANH_GRADIENT,
        activation_forward=_TANH_FORWARD,
        residual_masks=2,
        rotates=False,
    ),
    "gpt_bigcode": Family(residual_masks=2, rotates=False),
    "starcoder2": Family(residual_masks=2),
    "seed_oss": Family(residual_masks=2),
    "granite": Family(scales_residual=True),
    "qwen3_next": Family(norm="offset rms", fresh_query=True, normalized_routing=True),
    "qwen3_5": Family(norm="offset rms", fresh_query=True),
    "qwen3_5_moe": Family(norm="offset rms", fresh_query=True),
    "mixtral": Family(normalized_routing=True, fp32_routing=True),
    "qwen3_moe": Family(normalized_routing=True),
}
PLAIN = Family()


def family_and_norm(run: Run, block: Block) -> tuple[Family, Norm]:
    """The row of the run's model type, Llama's modules where there is none, and the norm of its layers."""
    family = FAMILIES.get(run.model.model_type if run.model else "", PLAIN)
    if ("layer_norm" if block.norm == "layer" else "rms_norm") in run.liger:
        return family, "liger"
    return family, family.norm or ("layer" if block.norm == "layer" else "rms")
