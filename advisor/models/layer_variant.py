"""What a decoder's modules do that its widths do not tell, read from transformers 5.16.1 and traced."""

from __future__ import annotations

from functools import partial
from typing import Literal

from advisor.record import record

NormVariant = Literal["rms", "fp32 rms", "offset rms", "layer", "fp32 layer", "half layer", "centred", "liger"]
"""How a norm computes.

``fp32 rms`` multiplies by its weight before it returns to half precision and keeps the fp32 product; ``offset
rms`` does so with 1 + weight, an fp32 vector that it keeps too. ``fp32 layer`` casts by hand and back, ``half
layer`` steps out of autocast, ``centred`` is a layer norm in plain fp32 operations. ``liger`` is Liger's
kernel.
"""


@record(eq=False)
class LayerVariant:
    """What a decoder's modules do otherwise than Llama's (models/llama/modeling_llama.py@5.16.1)."""

    norm: NormVariant | None = None
    """None: ``rms`` or ``layer``, as the block says."""
    widens_stream: bool = False
    """Autocast makes the stream fp32 before the layers, for it is divided by a power's mean: models/gemma3n,
    Gemma3nTextModel.forward@5.16.1."""
    root_by_power: bool = False
    """An RMS norm takes its root by torch.pow, which keeps what it is of, too (models/gemma4, Gemma4RMSNorm@5.16.1)."""
    fresh_query: bool = False
    """Rotary part and rest are concatenated to new queries: the kernel's output follows their layout and is
    copied."""
    joined_output: bool = False
    """Outputs of attention are joined image by image, by all kernels but FlashAttention's, which takes all at once."""
    wide_query_key_norm: bool = False
    """The norm of queries and keys spans the whole projection, not one head."""
    weightless_query_key_norm: bool = False
    """The norm of queries and keys has no weights."""
    rotary: int = 0
    """Bytes per token and element of head_dim of cosines and sines that each layer expands for itself."""
    parallel: bool = False
    """Attention and MLP read the same stream, each through a norm of its own."""
    activation: tuple[int, int] = (0, 0)
    """Bytes per element that an activation in plain operations keeps in addition to its input: without and with
    autocast."""
    activation_trained: tuple[int, int] = (0, 0)
    """Bytes per element more where the activation itself has weights that are trained."""
    residual_masks: int = 0
    """Dropouts on the way back to the residual stream, by the published configs."""
    normalized_routing: bool = False
    """The router divides by the sum of the chosen weights: one sum and one copy a token."""
    casts_stream: bool = False
    """The stream is turned to the dtype of the norm's weights before each norm: models/nemotron_h,
    NemotronHBlock.forward@5.16.1."""
    casts_router: bool = False
    """The router multiplies a copy of its input that is cast to fp32 by hand."""
    normed_router: bool = False
    """The router reads the residual stream through a norm and a scale of its own."""
    fp32_routing: bool = False
    """Routing weights stay fp32."""
    shared_first: bool = False
    """The MLP that every token passes computes before the experts, and so its backward comes after theirs."""
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
    branch_scales: bool = False
    """Attention and MLP are each multiplied by a trained vector before they join the residual stream."""
    clamped_experts: bool = False
    """Gate and up are clamped, scaled and shifted in plain operations: models/gpt_oss,
    GptOssExperts._apply_gate."""
    every_expert: bool = False
    """Every token passes every expert: models/llama4, Llama4TextMoe."""
    sinks: bool = False
    """One more score a head in eager attention, whose maximum is subtracted by hand: models/gpt_oss."""


LLAMA = LayerVariant()
"""None."""
OFFSET = LayerVariant(norm="offset rms")
"""Gemma's norm."""
FRESH_QUERY = LayerVariant(fresh_query=True)
TANH_GELU = (6, 12)
with_tanh_gelu = partial(LayerVariant, activation=TANH_GELU, activation_gradient=(6, 14), activation_forward=(8, 12))
"""NewGELUActivation (activations.py@5.16.1): half the input, tanh, one plus tanh; CUDA's autocast runs pow in fp32."""
SQUARED_RELU = (0, 4)
with_squared_relu = partial(
    LayerVariant, activation=SQUARED_RELU, activation_gradient=(8, 16), activation_forward=(4, 12)
)
"""ReLUSquaredActivation (activations.py@5.16.1): autocast runs torch.square in fp32, as a composite of pow."""
# XIELUActivation (activations.py@5.16.1), as it is without the xielu package; CUDA's autocast runs expm1 in fp32.
XIELU = (5, 9)
XIELU_TRAINED = (2, 4)
XIELU_GRADIENT = (9, 17)
XIELU_FORWARD = (11, 17)
