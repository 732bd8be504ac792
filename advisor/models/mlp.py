"""Feed-forward parts: dense (gated or not, fused or not) and mixtures of experts.

The functions here return the builder for a table row; biases are constants or the config key that decides,
and ``width`` is the config key of the width.
"""

from __future__ import annotations

from advisor.models.blocks import Mlp
from advisor.models.config import Config
from advisor.models.parts import Builder, Layer, Part, Tensors, linear, loose

Three = tuple[str, str, str]
GATED = ("gate_proj", "up_proj", "down_proj")


def gated_linears(at: str, hidden: int, width: int, bias: bool = False, names: Three = GATED) -> Tensors:
    """Gate, up and down projection."""
    gate, up, down = (f"{at}.{name}" for name in names)
    return (
        *linear(gate, hidden, width, "mlp", bias),
        *linear(up, hidden, width, "mlp", bias),
        *linear(down, width, hidden, "mlp", bias),
    )


def gated(
    at: str = "mlp", *, bias: bool | str = False, width: str = "intermediate_size", names: Three = GATED
) -> Builder:
    """A gated MLP (SwiGLU and its kin: Shazeer 2020)."""

    def build(c: Config, _: Layer) -> Part:
        return Part(gated_linears(at, c.hidden, c.size(width), c.flag(bias), names), mlp=Mlp(c.size(width)))

    return build


def fused(at: str = "mlp", *, width: str = "intermediate_size") -> Builder:
    """A gated MLP whose gate and up projections are one linear."""

    def build(c: Config, _: Layer) -> Part:
        inner = c.size(width)
        up = linear(f"{at}.gate_up_proj", c.hidden, 2 * inner, "mlp")
        return Part((*up, *linear(f"{at}.down_proj", inner, c.hidden, "mlp")), mlp=Mlp(inner))

    return build


def plain(
    up: str = "mlp.up_proj",
    down: str = "mlp.down_proj",
    *,
    bias: bool | str = False,
    loose_names: tuple[str, ...] = (),
) -> Builder:
    """Two linears with an activation between them; four times hidden wide where the config gives no width.

    ``loose_names`` are the names of parameters of one element, such as a trained activation's.
    """

    def build(c: Config, _: Layer) -> Part:
        width, biased = c.size("intermediate_size", 4 * c.hidden), c.flag(bias)
        tensors = (
            *linear(up, c.hidden, width, "mlp", biased),
            *linear(down, width, c.hidden, "mlp", biased),
            *(tensor for name in loose_names for tensor in loose(name, (1,), "mlp")),
        )
        return Part(tensors, mlp=Mlp(width, gated=False))

    return build


def experts(
    at: str = "mlp",
    *,
    width: str = "moe_intermediate_size",
    router: str = "gate",
    router_linear: bool = False,
    bias: bool = False,
    transposed: bool = False,
    shared: str = "",
    shared_width: str = "",
    shared_count: str = "",
    shared_gate: bool = False,
    shared_bias: bool | str = False,
) -> Builder:
    """A router, routed experts stacked in one tensor each way, and shared experts that every token passes.

    Stacked experts are how transformers 5 holds them: (experts, 2 x width, hidden) and (experts, hidden,
    width); ``transposed`` swaps in and out, ``bias`` is on router and experts. ``shared`` names the module of
    the shared experts, ``shared_width`` the key of their summed width, ``shared_count`` the key of how many
    of the routed width they are.
    """

    def build(c: Config, _: Layer) -> Part:
        inner, count = c.size(width), c.experts
        common = _shared(c, inner, shared_width, shared_count)
        tensors = (
            *_router(joined(at, router), c.hidden, count, router_linear, bias),
            *_stacked(joined(at, "experts"), c.hidden, inner, count, transposed, bias),
            *(gated_linears(f"{at}.{shared}", c.hidden, common, c.flag(shared_bias)) if common else ()),
            *(linear(f"{at}.shared_expert_gate", c.hidden, 1, "mlp") if common and shared_gate else ()),
        )
        routed = min(count, c.size("num_experts_per_tok", count))
        return Part(tensors, mlp=Mlp(inner, True, count, routed, common))

    return build


def joined(at: str, name: str) -> str:
    """A name within a module; the layer itself where that is empty."""
    return f"{at}.{name}" if at else name


def _shared(c: Config, inner: int, width_key: str, count_key: str) -> int:
    if width_key:
        return c.maybe(width_key) or 0
    return (c.maybe(count_key) or 0) * inner if count_key else 0


def _router(name: str, hidden: int, count: int, is_linear: bool, bias: bool) -> Tensors:
    if is_linear:
        return linear(name, hidden, count, "router", bias)
    weight = loose(f"{name}.weight", (count, hidden), "router")
    return (*weight, *loose(f"{name}.bias", (count,), "router")) if bias else weight


def _stacked(at: str, hidden: int, width: int, count: int, transposed: bool, bias: bool) -> Tensors:
    up, down = (count, 2 * width, hidden), (count, hidden, width)
    if transposed:
        up, down = (count, hidden, 2 * width), (count, width, hidden)
    tensors = (*loose(f"{at}.gate_up_proj", up, "experts"), *loose(f"{at}.down_proj", down, "experts"))
    if bias:
        tensors += loose(f"{at}.gate_up_proj_bias", (count, 2 * width), "experts")
        tensors += loose(f"{at}.down_proj_bias", (count, hidden), "experts")
    return tensors
