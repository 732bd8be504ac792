"""DeepSeek and the models built like it: latent attention, fine-grained experts, sparse indexers."""

from __future__ import annotations

from advisor.models.attention import latent
from advisor.models.blocks import Attention
from advisor.models.config import Config
from advisor.models.decoder import FULL, Decoder, fitted
from advisor.models.family import EXPERT_MLP, LIGER_WITHOUT_ROPE, MLP_TARGETS, Family, Taped
from advisor.models.layer_variant import LayerVariant
from advisor.models.mlp import experts, gated
from advisor.models.parts import Layer, Part, Tensors, linear, loose, norm, within
from advisor.models.sparse import leading_dense_marks, with_experts

_EXPERTS = experts(shared="shared_experts", shared_count="n_shared_experts")
_MLPS = {"sparse": _EXPERTS, "dense": gated()}
_INDEXED = "indexed_attention"
_COMPRESSED, _HEAVILY = "compressed_sparse_attention", "heavily_compressed_attention"
_RATIOS = {4: _COMPRESSED, 128: _HEAVILY}


def _latent_plan(c: Config) -> list[Layer]:
    """Latent attention in every layer, experts after the leading dense ones."""
    return with_experts([Layer()] * c.layers, leading_dense_marks(c))


def _indexed_plan(c: Config) -> list[Layer]:
    """GLM-5: some layers compute which tokens to look at, the others share the choice (``indexer_types``)."""
    freq, offset = max(c.size("index_topk_freq", 1), 1), c.size("index_skip_topk_offset", 2)
    kinds = c.strings("indexer_types") or [
        "shared" if max(i - offset + 1, 0) % freq else "full" for i in range(c.layers)
    ]
    layers = [Layer(_INDEXED if kind == "full" else FULL) for kind in fitted(kinds, c.layers)]
    return with_experts(layers, leading_dense_marks(c))


def indexed_attention(c: Config, layer: Layer) -> Part:
    """Latent attention with DeepSeek's sparse indexer (DeepSeek-V3.2, 2025)."""
    part = latent(c, layer)
    width, heads, at = c.size("index_head_dim"), c.size("index_n_heads"), "self_attn.indexer"
    indexer = (
        *linear(f"{at}.wq_b", c.size("q_lora_rank"), heads * width, "attention"),
        *linear(f"{at}.wk", c.hidden, width, "attention"),
        *norm(f"{at}.k_norm", width, True),
        *linear(f"{at}.weights_proj", c.hidden, heads, "attention"),
    )
    return Part((*part.tensors, *indexer), attention=part.attention)


def _compressed_plan(c: Config) -> list[Layer]:
    """DeepSeek-V4: ``layer_types``, or ``compress_ratios``: 0 a sliding window, 4 and 128 compressed."""
    ratios, window = c.ints("compress_ratios"), c.maybe("sliding_window")
    types = c.strings("layer_types") or [_RATIOS.get(ratio, FULL) for ratio in ratios]
    if not types:
        types = [_HEAVILY] * 2 + [_COMPRESSED if i % 2 else _HEAVILY for i in range(c.layers - 2)]
    kinds = [kind if kind in (_COMPRESSED, _HEAVILY) else FULL for kind in fitted(types, c.layers)]
    return [Layer(kind, "sparse", window if kind == FULL else None) for kind in kinds]


def _shared_key_attention(c: Config, layer: Layer) -> Part:
    """DeepSeek-V4: low-rank queries, one head that is key and value at once, output in low-rank groups."""
    heads, head, hidden, rank = c.heads, c.head_dim, c.hidden, c.size("q_lora_rank")
    groups, out_rank, at = c.size("o_groups"), c.size("o_lora_rank"), "self_attn"
    tensors = (
        *loose(f"{at}.sinks", (heads,), "attention"),
        *linear(f"{at}.q_a_proj", hidden, rank, "attention"),
        *norm(f"{at}.q_a_norm", rank),
        *linear(f"{at}.q_b_proj", rank, heads * head, "attention"),
        *linear(f"{at}.kv_proj", hidden, head, "attention"),
        *norm(f"{at}.kv_norm", head),
        *linear(f"{at}.o_a_proj", heads * head // groups, groups * out_rank, "attention"),
        *linear(f"{at}.o_b_proj", groups * out_rank, hidden, "attention"),
        *_compressor(c, layer),
    )
    return Part(tensors, attention=Attention("softmax", heads, 1, head, heads * head, head, head, layer.window))


def _compressor(c: Config, layer: Layer) -> Tensors:
    if layer.mixer == FULL:
        return ()
    rates, sparse = c.section("compress_rates"), layer.mixer == _COMPRESSED
    rate = (rates.maybe(layer.mixer) if rates else None) or (4 if sparse else 128)
    pooled = _pool(c.hidden, c.head_dim, rate, overlapping=sparse)
    if sparse:
        inner, heads = c.size("index_head_dim"), c.size("index_n_heads")
        indexer = (
            *_pool(c.hidden, inner, rate, overlapping=True),
            *linear("q_b_proj", c.size("q_lora_rank"), heads * inner, "attention"),
            *linear("scorer.weights_proj", c.hidden, heads, "attention"),
        )
        pooled += within("indexer", indexer)
    return within("self_attn.compressor", pooled)


def _pool(hidden: int, width: int, rate: int, overlapping: bool) -> Tensors:
    out = 2 * width if overlapping else width
    return (
        *loose("position_bias", (rate, out), "attention"),
        *linear("kv_proj", hidden, out, "attention"),
        *linear("gate_proj", hidden, out, "attention"),
        *norm("kv_norm", width),
    )


def _hyper_connections(c: Config, _: Layer) -> Tensors:
    """DeepSeek-V4's mixing of parallel residual streams around attention and MLP."""
    streams = c.size("hc_mult", 4)
    mixes = (2 + streams) * streams
    shapes = {"fn": (mixes, streams * c.hidden), "base": (mixes,), "scale": (3,)}
    return tuple(
        t for at in ("attn_hc", "ffn_hc") for name, s in shapes.items() for t in loose(f"{at}.{name}", s, "other")
    )


def _hyper_head(c: Config) -> Tensors:
    """How DeepSeek-V4 joins its residual streams before the head."""
    streams = c.size("hc_mult", 4)
    shapes = {"hc_fn": (streams, streams * c.hidden), "hc_base": (streams,), "hc_scale": (1,)}
    return tuple(t for name, shape in shapes.items() for t in loose(f"hc_head.{name}", shape, "other"))


FAMILIES: dict[str, Family] = {
    "deepseek_v2": Family(
        Decoder(latent, _MLPS, _latent_plan, variant=LayerVariant(casts_router=True, fp32_routing=True)),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        lora_kernels="unpatchable",
        absent_leaf="DeepseekV2MoE",
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "deepseek_v3": Family(
        Decoder(latent, _MLPS, _latent_plan, variant=LayerVariant(casts_router=True)),
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(routes="grouped sigmoid"),
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "kimi_k2": Family(Decoder(latent, _MLPS, _latent_plan)),
    "mistral4": Family(
        # Softmax without a dtype, which CUDA's autocast gives in fp32: Mistral4TopkRouter.forward@5.16.1.
        Decoder(latent, _MLPS, _latent_plan, variant=LayerVariant(fp32_routing=True)),
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(routes="grouped softmax", scales_queries=True),
    ),
    "glm4_moe_lite": Family(
        Decoder(latent, _MLPS, _latent_plan, variant=LayerVariant(casts_router=True)),
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(routes="grouped sigmoid"),
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "deepseek_v32": Family(
        Decoder(
            indexed_attention,
            _MLPS,
            _latent_plan,
        ),
        lora_kernels="unpatchable",
        flash_attention=False,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "glm_moe_dsa": Family(
        Decoder(
            {FULL: latent, _INDEXED: indexed_attention},
            _MLPS,
            _indexed_plan,
        ),
        cut=True,
        lora_kernels="unpatchable",
        flash_attention=False,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "deepseek_v4": Family(
        Decoder(
            _shared_key_attention,
            _EXPERTS,
            _compressed_plan,
            loose=_hyper_connections,
            outside=_hyper_head,
            extra=("The residual stream is several streams wide (hyper-connections).",),
        ),
        liger=frozenset(["loss", "rms_norm"]),
        cut=True,
        lora_kernels="unpatchable",
        sdpa=False,
        flash_attention=False,
        merges_experts=True,
    ),
}
