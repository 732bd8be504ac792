"""Softmax attention: multi-head, grouped and multi-query, fused or not, and DeepSeek's latent attention.

The functions here return the builder for a table row; biases are constants or the config key that decides.
"""

from __future__ import annotations

from typing import Literal

from advisor.models.blocks import Attention
from advisor.models.config import Config
from advisor.models.parts import Builder, Layer, Part, Tensors, linear, loose, norm

Names = tuple[str, str, str, str]
NormKind = Literal["", "head", "width", "per-head"]


def _softmax_widths(c: Config, layer: Layer, query_key_norm: bool = False, gated: bool = False) -> Attention:
    """Widths of grouped-query attention from the usual config keys."""
    width, kv_width = c.heads * c.head_dim, c.kv_heads * c.head_dim
    softcap = bool(c.get("attn_logit_softcapping"))
    return Attention(
        "softmax",
        c.heads,
        c.kv_heads,
        c.head_dim,
        width,
        kv_width,
        kv_width,
        layer.window,
        query_key_norm,
        softcap,
        gated=gated,
        rotated=rotated(c),
    )


PARTLY_ROTATED = {
    **dict.fromkeys(("phi", "glm4", "glm4v_text", "nemotron"), 0.5),
    **dict.fromkeys(("gpt_neox", "stablelm", "qwen3_5_text", "qwen3_5_moe_text"), 0.25),
}
"""Class defaults of ``partial_rotary_factor``: models/phi/configuration_phi.py:88, gpt_neox:98, stablelm:68,
qwen3_5:111, qwen3_5_moe:124@5.16.1; of GLM-4V what the published configs say."""


def rotated(c: Config) -> int | None:
    """Elements of a head that are rotated; None where the config says nothing, and so all."""
    parameters = c.section("rope_parameters")
    inner = parameters.get("partial_rotary_factor") if parameters else None
    said = (inner, c.get("partial_rotary_factor"), c.get("rotary_pct"))
    shares = (one for one in said if isinstance(one, int | float) and 0 <= one <= 1)
    share = next(shares, PARTLY_ROTATED.get(c.model_type))
    return None if share is None else int(c.head_dim * share)


def softmax(
    at: str = "self_attn",
    *,
    bias: bool | str = False,
    out_bias: bool | str | None = None,
    names: Names = ("q_proj", "k_proj", "v_proj", "o_proj"),
    query_key_norm: NormKind = "",
    norm_key: bool | str = True,
    norm_names: tuple[str, str] = ("q_norm", "k_norm"),
    sinks: bool = False,
    gate: str = "",
    doubled_query: bool = False,
) -> Builder:
    """Attention with four projections of its own (Vaswani et al. 2017; grouped queries: Ainslie et al. 2023).

    ``at`` is the module's name. ``query_key_norm`` is over each head (``head``, or ``per-head`` with a weight
    for each), or over the whole projection (``width``); ``norm_key`` turns it on. ``gate`` names a projection
    that gates the output; ``doubled_query`` is a gate inside the query projection.
    """

    def build(c: Config, layer: Layer) -> Part:
        normed = bool(query_key_norm) and c.flag(norm_key)
        widths = _softmax_widths(c, layer, normed, bool(gate) or doubled_query)
        biased = c.flag(bias)
        q, k, v, o = (f"{at}.{name}" for name in names)
        tensors = (
            *linear(q, c.hidden, widths.query_width * (2 if doubled_query else 1), "attention", biased),
            *linear(k, c.hidden, widths.key_width, "attention", biased),
            *linear(v, c.hidden, widths.value_width, "attention", biased),
            *linear(o, widths.query_width, c.hidden, "attention", biased if out_bias is None else c.flag(out_bias)),
            *(_query_key_norms(at, norm_names, query_key_norm, widths) if normed else ()),
            *(loose(f"{at}.sinks", (widths.heads,), "attention") if sinks else ()),
            *(linear(f"{at}.{gate}", c.hidden, widths.query_width, "attention") if gate else ()),
        )
        return Part(tensors, widths)

    return build


def _query_key_norms(at: str, names: tuple[str, str], kind: NormKind, widths: Attention) -> Tensors:
    """The norms over queries and keys."""
    q, k = (f"{at}.{name}" for name in names)
    match kind:
        case "width":
            return (*norm(q, widths.query_width), *norm(k, widths.key_width))
        case "per-head":
            heads, kv_heads, head = widths.heads, widths.kv_heads, widths.head_dim
            return (
                *loose(f"{q}.weight", (heads, head), "norm"),
                *loose(f"{k}.weight", (kv_heads, head), "norm"),
            )
        case _:
            return (*norm(q, widths.head_dim), *norm(k, widths.head_dim))


def fused_softmax(qkv: str, out: str, *, bias: bool | str = False, out_bias: bool | str | None = None) -> Builder:
    """Attention with one projection for queries, keys and values, and one for the output."""

    def build(c: Config, layer: Layer) -> Part:
        widths, biased = _softmax_widths(c, layer), c.flag(bias)
        fused = widths.query_width + widths.key_width + widths.value_width
        tensors = (
            *linear(qkv, c.hidden, fused, "attention", biased),
            *linear(
                out,
                widths.query_width,
                c.hidden,
                "attention",
                biased if out_bias is None else c.flag(out_bias),
            ),
        )
        return Part(tensors, widths)

    return build


def latent(c: Config, layer: Layer) -> Part:
    """Multi-head latent attention (DeepSeek-V2, 2024): keys and values from a low-rank projection."""
    heads, hidden, bias, at = c.heads, c.hidden, c.flag("attention_bias"), "self_attn"
    nope, rope, value = c.size("qk_nope_head_dim"), c.size("qk_rope_head_dim"), c.size("v_head_dim")
    rank, query_rank, width = c.size("kv_lora_rank"), c.maybe("q_lora_rank"), heads * (nope + rope)
    query = linear(f"{at}.q_proj", hidden, width, "attention")
    if query_rank:
        query = (
            *linear(f"{at}.q_a_proj", hidden, query_rank, "attention", bias),
            *norm(f"{at}.q_a_layernorm", query_rank),
            *linear(f"{at}.q_b_proj", query_rank, width, "attention"),
        )
    tensors = (
        *query,
        *linear(f"{at}.kv_a_proj_with_mqa", hidden, rank + rope, "attention", bias),
        *norm(f"{at}.kv_a_layernorm", rank),
        *linear(f"{at}.kv_b_proj", rank, heads * (nope + value), "attention"),
        *linear(f"{at}.o_proj", heads * value, hidden, "attention", bias),
    )
    return Part(tensors, Attention("latent", heads, heads, nope + rope, width, width, heads * value, layer.window))
