"""Llama 3.2 Vision's and Llama 4's decoders."""

from __future__ import annotations

from advisor.models.attention import softmax
from advisor.models.config import Config
from advisor.models.decoder import FULL, Decoder
from advisor.models.family import LIGER, Family
from advisor.models.layer_variant import LayerVariant
from advisor.models.mlp import experts, gated
from advisor.models.parts import Layer, Part, Tensors, loose
from advisor.record import replace

_CROSS = "cross_attention"


def _cross_plan(c: Config) -> list[Layer]:
    """Llama 3.2 Vision: some layers attend to the image instead of the text."""
    cross = c.ints("cross_attention_layers") or [3, 8, 13, 18, 23, 28, 33, 38]
    return [Layer(_CROSS if i in cross else FULL) for i in range(c.layers)]


def _cross_gates(_: Config, layer: Layer) -> Tensors:
    """The two gates through which a cross-attention layer speaks."""
    if layer.mixer != _CROSS:
        return ()
    return (*loose("cross_attn_attn_gate", (1,), "attention"), *loose("cross_attn_mlp_gate", (1,), "mlp"))


def _chunked_plan(c: Config) -> list[Layer]:
    """Llama 4: attention within chunks but for each ``no_rope_layer_interval``-th layer; experts in steps."""
    chunk, every = c.maybe("attention_chunk_size"), c.size("no_rope_layer_interval", 4)
    rope = c.ints("no_rope_layers") or [int((i + 1) % every != 0) for i in range(c.layers)]
    step = c.size("interleave_moe_layer_step", 1)
    sparse = c.ints("moe_layers") or range(step - 1, c.layers, step)
    return [
        Layer(FULL, "sparse" if i in sparse else "dense", chunk if rope[i % len(rope)] else None)
        for i in range(c.layers)
    ]


def _llama4_attention(c: Config, layer: Layer) -> Part:
    """Llama 4's attention; where it rotates, it norms queries and keys, without weights."""
    part = softmax(bias="attention_bias")(c, layer)
    assert part.attention is not None
    normed = c.flag("use_qk_norm", True) and layer.window is not None
    return replace(part, attention=replace(part.attention, query_key_norm=normed))


FAMILIES: dict[str, Family] = {
    "mllama_text_model": Family(
        Decoder(
            {FULL: softmax(), _CROSS: softmax("cross_attn", query_key_norm="head")},
            plan=_cross_plan,
            loose=_cross_gates,
            embedding_rows=8,
        ),
        liger=LIGER,
        lora_kernels="unpatchable",
    ),
    "llama4_text": Family(
        Decoder(
            _llama4_attention,
            {
                "dense": gated("feed_forward", width="intermediate_size_mlp"),
                "sparse": experts(
                    "feed_forward",
                    router="router",
                    router_linear=True,
                    width="intermediate_size",
                    transposed=True,
                    shared="shared_expert",
                    shared_width="intermediate_size",
                ),
            },
            _chunked_plan,
            variant=LayerVariant(every_expert=True, weightless_query_key_norm=True),
        ),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        flash_attention=False,
        router_returns_choice=True,
    ),
}
