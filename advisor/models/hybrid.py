"""Decoders that mix attention with state space, linear attention or convolution layers, and pure Mamba."""

from __future__ import annotations

from advisor.models.attention import latent, softmax
from advisor.models.blocks import Mlp
from advisor.models.config import Config
from advisor.models.decoder import FULL, Decoder, fitted
from advisor.models.family import EXPERT_MLP, EXPERT_W, LIGER, LIGER_WITHOUT_ROPE, MLP_TARGETS, Family, Taped
from advisor.models.layer_variant import LayerVariant, with_squared_relu
from advisor.models.mixers import delta_net, kimi_delta, mamba, mamba2, short_convolution
from advisor.models.mlp import experts, gated, gated_linears, plain
from advisor.models.parts import Builder, Layer, Part, linear, loose
from advisor.models.sparse import QWEN_SHARED, granite_mlp, leading_dense_marks, qwen_marks, with_experts

_JAMBA_MAMBA = mamba(
    "mamba",
    state="mamba_d_state",
    kernel="mamba_d_conv",
    expand="mamba_expand",
    rank="mamba_dt_rank",
    conv_bias="mamba_conv_bias",
    bias="mamba_proj_bias",
    inner="",
    norms=True,
)
_NEMOTRON_MAMBA = mamba2(
    "mixer",
    heads="mamba_num_heads",
    head_dim="mamba_head_dim",
    groups="n_groups",
    state="ssm_state_size",
    kernel="conv_kernel",
    conv_bias="use_conv_bias",
    chunk="chunk_size",
)
_MAMBA2 = mamba2(
    "mixer",
    heads="num_heads",
    head_dim="head_dim",
    groups="n_groups",
    state="state_size",
    kernel="conv_kernel",
    conv_bias="use_conv_bias",
    bias="use_bias",
    chunk="chunk_size",
    fp32_stream="residual_in_fp32",
)
_GATED_ATTENTION = softmax(bias="attention_bias", query_key_norm="head", doubled_query=True)
_LFM2_ATTENTION = softmax(
    names=("q_proj", "k_proj", "v_proj", "out_proj"),
    query_key_norm="head",
    norm_names=("q_layernorm", "k_layernorm"),
)
_MAMBA_NAMES = {"mamba", "mamba2", "linear_attention"}


def _jamba_plan(c: Config) -> list[Layer]:
    """Jamba: attention and experts in every so many layers, each from an offset."""

    def every(i: int, what: str) -> bool:
        return i % c.size(f"{what}_layer_period") == c.size(f"{what}_layer_offset")

    sparse = c.experts > 1
    return [
        Layer(FULL if every(i, "attn") else "mamba", "sparse" if sparse and every(i, "expert") else "dense")
        for i in range(c.layers)
    ]


def _typed_plan(c: Config, mlp: str = "dense") -> list[Layer]:
    """Mamba or full attention as ``layer_types`` says; all attention without it."""
    types = fitted(c.strings("layer_types") or [FULL], c.layers)
    return [Layer("mamba" if kind in _MAMBA_NAMES else FULL, mlp) for kind in types]


def _bamba_plan(c: Config) -> list[Layer]:
    """Bamba: ``attn_layer_indices`` where there is no list of layer types."""
    if c.strings("layer_types"):
        return _typed_plan(c)
    attention = c.ints("attn_layer_indices")
    return [Layer(FULL if i in attention else "mamba") for i in range(c.layers)]


def _granite_plan(c: Config) -> list[Layer]:
    """Granite 4: experts next to the shared MLP where the model has any."""
    return _typed_plan(c, "sparse" if c.experts else "dense")


def _falcon_mixers(c: Config, layer: Layer) -> Part:
    """Falcon-H1: attention and a Mamba-2 mixer side by side in every layer."""
    attention = softmax(bias="attention_bias")(c, layer)
    scanned = mamba2(inner="mamba_d_ssm", norm_key="mamba_rms_norm", scaled=True)(c, layer)
    return Part((*scanned.tensors, *attention.tensors), attention=attention.attention, states=scanned.states)


def _nemotron_plan(c: Config) -> list[Layer]:
    """Nemotron-H: each layer is one thing, by ``hybrid_override_pattern`` (M, *, -, E) or ``layer_types``."""
    letters = {"M": "mamba", "*": FULL, "-": "mlp", "E": "moe"}
    pattern = c.get("hybrid_override_pattern")
    kinds = (
        [letters.get(letter, letter) for letter in pattern] if isinstance(pattern, str) else c.strings("layer_types")
    )
    layers: list[Layer] = []
    for kind in kinds or [FULL] * c.layers:
        mixer = "mamba" if kind in _MAMBA_NAMES else FULL if kind in {FULL, "attention"} else ""
        layers.append(Layer(mixer, "" if mixer else "sparse" if kind == "moe" else "dense"))
    return layers


def _nemotron_experts(c: Config, _: Layer) -> Part:
    """Nemotron 3: ungated experts, behind a narrower latent projection where ``moe_latent_size`` is set."""
    hidden, width, experts = c.hidden, c.size("moe_intermediate_size"), c.experts
    latent, shared = c.maybe("moe_latent_size"), c.maybe("moe_shared_expert_intermediate_size") or 0
    inner = latent or hidden
    tensors = (
        *loose("mixer.experts.up_proj", (experts, width, inner), "experts"),
        *loose("mixer.experts.down_proj", (experts, inner, width), "experts"),
        *loose("mixer.gate.weight", (experts, hidden), "router"),
    )
    if shared:
        tensors += linear("mixer.shared_experts.up_proj", hidden, shared, "mlp")
        tensors += linear("mixer.shared_experts.down_proj", shared, hidden, "mlp")
    if latent:
        tensors += linear("mixer.fc1_latent_proj", hidden, latent, "mlp")
        tensors += linear("mixer.fc2_latent_proj", latent, hidden, "mlp")
    return Part(tensors, mlp=Mlp(width, False, experts, c.size("num_experts_per_tok", 1), shared, latent or 0))


def _lfm2_plan(c: Config) -> list[Layer]:
    """LFM2: short convolutions but for the layers with attention; dense first in the sparse one."""
    attention = c.ints("full_attn_idxs")
    types = c.strings("layer_types") or [FULL if i in attention else "conv" for i in range(c.layers)]
    layers = [Layer(kind) for kind in fitted(types, c.layers)]
    return with_experts(layers, leading_dense_marks(c)) if c.experts else layers


def _lfm2_mlp(c: Config, _: Layer) -> Part:
    """LFM2's MLP: two thirds of the given width, rounded up, where ``block_auto_adjust_ff_dim`` is set."""
    width = c.size("intermediate_size", c.maybe("block_ff_dim"))
    if c.flag("block_auto_adjust_ff_dim"):
        factor, step = c.get("block_ffn_dim_multiplier"), c.size("block_multiple_of", 256)
        width = int((float(factor) if isinstance(factor, (int, float)) else 1.0) * int(2 * width / 3))
        width = -(-width // step) * step
    return Part(gated_linears("feed_forward", c.hidden, width, names=("w1", "w3", "w2")), mlp=Mlp(width))


def _qwen_linear_plan(c: Config) -> list[Layer]:
    """Qwen3-Next and Qwen3.5: full attention in each ``full_attention_interval``-th layer."""
    every = c.size("full_attention_interval", 4)
    types = c.strings("layer_types") or ["linear_attention" if (i + 1) % every else FULL for i in range(c.layers)]
    return with_experts([Layer(kind) for kind in fitted(types, c.layers)], qwen_marks(c))


def _kimi_plan(c: Config) -> list[Layer]:
    """Kimi Linear: ``layer_types``, or the release's lists of layers, which count from one."""
    nested = c.section("linear_attn_config")
    full = nested.ints("full_attn_layers") if nested else []
    types = c.strings("layer_types") or [FULL if i + 1 in full else "linear_attention" for i in range(c.layers)]
    return with_experts([Layer(kind) for kind in fitted(types, c.layers)], leading_dense_marks(c))


def _state_space(mixer: Builder) -> Decoder:
    """Pure Mamba: a mixer and a norm a layer, no MLP."""
    return Decoder(
        mixer,
        {},
        lambda c: [Layer("mamba", "")] * c.layers,
        ("norm",),
        root="backbone",
        embedding="embeddings",
        final_norm="norm_f",
    )


_QWEN_MIXERS = {FULL: _GATED_ATTENTION, "linear_attention": delta_net()}
_QWEN_SPARSE = LayerVariant(norm="offset rms", fresh_query=True, normalized_routing=True, shared_first=True)
_PRE_FF = ("input_layernorm", "pre_ff_layernorm")
_LFM2_NORMS = ("operator_norm", "ffn_norm")

FAMILIES: dict[str, Family] = {
    "mamba": Family(
        _state_space(mamba()), lora_kernels="unpatchable", sdpa=False, flash_attention=False, mask_taken_out=True
    ),
    "falcon_mamba": Family(_state_space(mamba()), lora_kernels="unpatchable", sdpa=False, flash_attention=False),
    "mamba2": Family(_state_space(_MAMBA2), lora_kernels="unpatchable", flash_attention=False),
    "jamba": Family(
        Decoder(
            {FULL: softmax(), "mamba": _JAMBA_MAMBA},
            {
                "dense": gated("feed_forward"),
                "sparse": experts("feed_forward", router="router", router_linear=True, width="intermediate_size"),
            },
            _jamba_plan,
            _PRE_FF,
            final_norm="final_layernorm",
        ),
        liger=LIGER_WITHOUT_ROPE,
        merges_experts=True,
    ),
    "bamba": Family(
        Decoder(
            {FULL: softmax(bias="attention_bias"), "mamba": mamba2()},
            gated("feed_forward", bias="mlp_bias"),
            _bamba_plan,
            _PRE_FF,
            final_norm="final_layernorm",
        )
    ),
    "granitemoehybrid": Family(
        Decoder(
            {FULL: softmax(bias="attention_bias"), "mamba": mamba2()},
            granite_mlp,
            _granite_plan,
            variant=LayerVariant(scales_residual=True),
        ),
        cut=True,
        scales_logits=True,
        packing_patch_broken=True,
    ),
    "falcon_h1": Family(
        Decoder(
            _falcon_mixers,
            gated("feed_forward", bias="mlp_bias"),
            norms=_PRE_FF,
            final_norm="final_layernorm",
            variant=LayerVariant(scales_residual=True),
        ),
        liger=LIGER,
        lora_kernels="unpatchable",
        whole_linears=("out_proj",),
        has_tapes=True,
        tape=Taped(scales_embedding="after", scales_keys=True),
    ),
    "nemotron_h": Family(
        Decoder(
            {FULL: softmax("mixer", bias="attention_bias"), "mamba": _NEMOTRON_MAMBA},
            {"dense": plain("mixer.up_proj", "mixer.down_proj", bias="mlp_bias"), "sparse": _nemotron_experts},
            _nemotron_plan,
            ("norm",),
            embedding="embeddings",
            final_norm="norm_f",
            variant=with_squared_relu(casts_router=True, casts_stream=True),
        ),
        cut=True,
        lora_kernels="unbound",
        embedding_modules=("embeddings", "lm_head"),
        expert_leaf="NemotronHMoE",
        has_tapes=True,
        tape=Taped(tables="none", routes="grouped sigmoid", widens_logits=True),
        merges_experts=True,
    ),
    "lfm2": Family(
        Decoder(
            {FULL: _LFM2_ATTENTION, "conv": short_convolution},
            _lfm2_mlp,
            _lfm2_plan,
            _LFM2_NORMS,
            final_norm="embedding_norm",
        ),
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
    ),
    "lfm2_moe": Family(
        Decoder(
            {FULL: _LFM2_ATTENTION, "conv": short_convolution},
            {"dense": gated("feed_forward", names=("w1", "w3", "w2")), "sparse": experts("feed_forward")},
            _lfm2_plan,
            _LFM2_NORMS,
            final_norm="embedding_norm",
        ),
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(routes="sigmoid shares"),
        merges_experts=True,
    ),
    "qwen3_next": Family(
        Decoder(
            {FULL: _GATED_ATTENTION, "linear_attention": delta_net(fused=True)},
            {"sparse": QWEN_SHARED, "dense": gated()},
            _qwen_linear_plan,
            variant=_QWEN_SPARSE,
        ),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "qwen3_5_text": Family(
        Decoder(_QWEN_MIXERS, gated(), _qwen_linear_plan, variant=LayerVariant(norm="offset rms", fresh_query=True)),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(joins="both", axes="written over"),
    ),
    "qwen3_5_moe_text": Family(
        Decoder(_QWEN_MIXERS, QWEN_SHARED, _qwen_linear_plan, variant=_QWEN_SPARSE),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(joins="both", axes="written over", routes="softmax shares"),
    ),
    "kimi_linear": Family(
        Decoder(
            {FULL: latent, "linear_attention": kimi_delta},
            {"sparse": experts(shared="shared_experts", shared_count="num_shared_experts"), "dense": gated()},
            _kimi_plan,
        ),
        cut=True,
        # axolotl/model_support/kimi_linear/modeling_kimi.py:815-822,1038-1126,1257-1266@0.19.0: layers are plain
        # modules, and the model calls them directly.
        checkpoints="without effect",
        linear_experts=True,
        expert_linears=EXPERT_W,
        own_code_stops=True,
    ),
}
