"""Token mixers that are not softmax attention: Mamba, Mamba-2, delta nets, short convolutions."""

from __future__ import annotations

from advisor.models.blocks import Attention, StateSpace
from advisor.models.config import Config
from advisor.models.parts import Builder, Layer, Part, conv, linear, loose, norm


def mamba(
    at: str = "mixer",
    *,
    state: str = "state_size",
    kernel: str = "conv_kernel",
    expand: str = "expand",
    rank: str = "time_step_rank",
    conv_bias: str = "use_conv_bias",
    bias: str = "use_bias",
    inner: str = "intermediate_size",
    norms: bool = False,
) -> Builder:
    """A selective state space layer (Gu and Dao 2023), by config keys; ``norms`` adds Jamba's three."""

    def build(c: Config, _: Layer) -> Part:
        hidden, states, biased = c.hidden, c.size(state), c.flag(bias)
        width = (c.maybe(inner) if inner else None) or c.size(expand) * hidden
        steps = -(-hidden // 16) if c.get(rank) in (None, "auto") else c.size(rank)
        normed = (("dt_layernorm", steps), ("b_layernorm", states), ("c_layernorm", states)) if norms else ()
        tensors = (
            *loose(f"{at}.A_log", (width, states), "mixer"),
            *loose(f"{at}.D", (width,), "mixer"),
            *conv(f"{at}.conv1d", (width, 1, c.size(kernel)), "mixer", c.flag(conv_bias, True)),
            *linear(f"{at}.in_proj", hidden, 2 * width, "mixer", biased),
            *linear(f"{at}.x_proj", width, steps + 2 * states, "mixer"),
            *linear(f"{at}.dt_proj", steps, width, "mixer", True),
            *linear(f"{at}.out_proj", width, hidden, "mixer", biased),
            *(t for name, size in normed for t in norm(f"{at}.{name}", size)),
        )
        scanned = StateSpace(width, states, rank=steps, normed=norms)
        return Part(tensors, Attention("ssm", 1, 1, width, states, states, width), states=scanned)

    return build


def mamba2(
    at: str = "mamba",
    *,
    heads: str = "mamba_n_heads",
    head_dim: str = "mamba_d_head",
    groups: str = "mamba_n_groups",
    state: str = "mamba_d_state",
    kernel: str = "mamba_d_conv",
    inner: str = "",
    conv_bias: str = "mamba_conv_bias",
    bias: str = "mamba_proj_bias",
    chunk: str = "mamba_chunk_size",
    norm_key: str | bool = True,
    scaled: bool = False,
    fp32_stream: str | bool = False,
) -> Builder:
    """A state space dual layer (Dao and Gu 2024), by config keys; ``norm_key`` turns its norm on."""

    def build(c: Config, _: Layer) -> Part:
        count, shared, biased = c.size(heads), c.size(groups, 1) * c.size(state), c.flag(bias)
        head = c.get(head_dim)
        width = c.maybe(inner) if inner else None
        width = width or (count * head if isinstance(head, int) else 2 * c.hidden)
        mixed = width + 2 * shared
        tensors = (
            *(t for name in ("dt_bias", "A_log", "D") for t in loose(f"{at}.{name}", (count,), "mixer")),
            *conv(f"{at}.conv1d", (mixed, 1, c.size(kernel)), "mixer", c.flag(conv_bias, True)),
            *linear(f"{at}.in_proj", c.hidden, width + mixed + count, "mixer", biased),
            *(norm(f"{at}.norm", width) if c.flag(norm_key) else ()),
            *linear(f"{at}.out_proj", width, c.hidden, "mixer", biased),
        )
        shares, normed = c.size(groups, 1), c.flag(norm_key)
        scanned = StateSpace(
            width,
            c.size(state),
            count,
            shares,
            c.size(chunk, 256),
            normed=normed,
            scaled=scaled,
            fp32_stream=c.flag(fp32_stream),
        )
        return Part(tensors, Attention("ssm", count, shares, width // count, shared, shared, width), states=scanned)

    return build


def delta_net(at: str = "linear_attn", *, fused: bool = False) -> Builder:
    """Gated delta net (Yang et al. 2024) of Qwen3-Next and Qwen3.5; ``fused`` as the former names it."""

    def build(c: Config, _: Layer) -> Part:
        key_heads, heads = c.size("linear_num_key_heads"), c.size("linear_num_value_heads")
        head_dim, hidden = c.size("linear_value_head_dim"), c.hidden
        keys, values = key_heads * c.size("linear_key_head_dim"), heads * head_dim
        mixed = 2 * keys + values
        if fused:
            inputs = {"in_proj_qkvz": mixed + values, "in_proj_ba": 2 * heads}
        else:
            inputs = {"in_proj_qkv": mixed, "in_proj_z": values, "in_proj_b": heads, "in_proj_a": heads}
        tensors = (
            *loose(f"{at}.dt_bias", (heads,), "mixer"),
            *loose(f"{at}.A_log", (heads,), "mixer"),
            *conv(f"{at}.conv1d", (mixed, 1, c.size("linear_conv_kernel_dim")), "mixer"),
            *(t for name, width in inputs.items() for t in linear(f"{at}.{name}", hidden, width, "mixer")),
            *norm(f"{at}.norm", head_dim),
            *linear(f"{at}.out_proj", values, hidden, "mixer"),
        )
        state = c.size("linear_key_head_dim")
        return Part(tensors, Attention("linear", heads, key_heads, head_dim, keys, keys, values, state=state))

    return build


def kimi_delta(c: Config, _: Layer) -> Part:
    """Kimi delta attention (Kimi Linear, 2025): a delta net with a gate a channel."""
    heads, head_dim, kernel = _kimi_sizes(c)
    width, hidden, at = heads * head_dim, c.hidden, "self_attn"
    tensors = (
        *(t for name in "qkv" for t in linear(f"{at}.{name}_proj", hidden, width, "mixer")),
        *(t for name in "qkv" for t in conv(f"{at}.{name}_conv1d", (width, 1, kernel), "mixer")),
        *loose(f"{at}.A_log", (heads,), "mixer"),
        *linear(f"{at}.forget_gate.f_a_proj", hidden, head_dim, "mixer"),
        *linear(f"{at}.forget_gate.f_b_proj", head_dim, width, "mixer"),
        *loose(f"{at}.dt_bias", (width,), "mixer"),
        *linear(f"{at}.b_proj", hidden, heads, "mixer"),
        *linear(f"{at}.g_a_proj", hidden, head_dim, "mixer"),
        *linear(f"{at}.g_b_proj", head_dim, width, "mixer"),
        *norm(f"{at}.o_norm", head_dim),
        *linear(f"{at}.o_proj", width, hidden, "mixer"),
    )
    return Part(tensors, attention=Attention("linear", heads, heads, head_dim, width, width, width))


def _kimi_sizes(c: Config) -> tuple[int, int, int]:
    """Heads, head width and kernel of Kimi's delta attention: flat keys, or ``linear_attn_config``."""
    nested = c.section("linear_attn_config")
    if nested is not None:
        return nested.size("num_heads"), nested.size("head_dim"), nested.size("short_conv_kernel_size", 4)
    return c.size("linear_num_heads"), c.size("linear_head_dim"), c.size("linear_conv_kernel_dim", 4)


def short_convolution(c: Config, _: Layer) -> Part:
    """LFM2's gated short convolution."""
    hidden, bias = c.hidden, c.flag("conv_bias")
    tensors = (
        *conv("conv.conv", (hidden, 1, c.size("conv_L_cache", 3)), "mixer", bias),
        *linear("conv.in_proj", hidden, 3 * hidden, "mixer", bias),
        *linear("conv.out_proj", hidden, hidden, "mixer", bias),
    )
    return Part(tensors, attention=Attention("conv", 1, 1, hidden, hidden, hidden, hidden))
