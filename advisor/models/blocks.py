"""What layers are made of, as far as memory is concerned: tensors, attention, MLPs, state spaces."""

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Literal

from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.layer_variant import LayerVariant
    from advisor.models.traced import LayerTrace

Kind = Literal[
    "embedding",
    "head",
    "attention",
    "mlp",
    "experts",
    "router",
    "mixer",
    "norm",
    "vision",
    "audio",
    "projector",
    "other",
]


@record
class WeightShape:
    """One kind of weight, ``count`` times.

    ``name`` is transformers' parameter name with ``*`` for the layer:
    ``model.layers.*.self_attn.q_proj.weight``. ``shape`` is torch's: (out, in) for a linear layer, (experts,
    out, in) for stacked experts. ``linear`` says that it is the weight of an ``nn.LinearShape``: what LoRA targets
    and bitsandbytes quantizes.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    count: int = 1
    linear: bool = False

    @cached_property
    def numel(self) -> int:
        """Elements of one such tensor."""
        return prod(self.shape)

    @cached_property
    def elements(self) -> int:
        """Elements of all ``count`` of them."""
        return self.numel * self.count

    @property
    def module(self) -> str:
        """The module that owns the weight: the name without ``.weight`` or ``.bias``."""
        return self.name.rsplit(".", 1)[0]


@record(eq=False)
class Attention:
    """The token mixer of a block.

    ``kind``: ``softmax`` (multi-head, grouped or multi-query), ``latent`` (MLA), ``linear`` (gated delta net
    and other linear attention), ``ssm`` (Mamba) or ``conv``. Widths are per token, in elements:
    ``query_width`` = heads x head_dim, ``key_width`` and ``value_width`` = kv_heads x head_dim; for ``ssm``
    and ``linear`` the widths of the projections that play the same role. ``window`` is the sliding window in
    tokens, None for full attention.
    """

    kind: Literal["softmax", "latent", "linear", "ssm", "conv"]
    heads: int
    kv_heads: int
    head_dim: int
    query_width: int
    key_width: int
    value_width: int
    window: int | None = None
    query_key_norm: bool = False
    logit_softcap: bool = False
    value_norm: bool = False
    """Values are normed, too, without a weight."""
    state: int = 0
    """Width of a key head of the gated delta rule, whose kernel is known."""
    gated: bool = False
    """Its output is multiplied by a sigmoid gate before the last projection."""
    own_keys: bool = True
    """False where keys and values are another layer's, which keeps them."""
    rotated: int | None = None
    """Elements of a head that its position turns; None is all of them."""


@record(eq=False)
class StateSpace:
    """A Mamba mixer: ``width`` channels that are scanned, in ``heads``, each with ``state`` numbers.

    ``groups`` of heads share what reads and writes the states. ``chunk`` tokens are scanned at once (Dao and Gu 2024);
    0: one after another (Gu and Dao 2023), with ``rank`` numbers for the steps, which are normed where ``normed`` is.
    Else ``normed`` says whether the gate is followed by a norm.
    """

    width: int
    state: int
    heads: int = 1
    groups: int = 1
    chunk: int = 0
    rank: int = 0
    normed: bool = True
    scaled: bool = False
    """Whether what enters is multiplied by a number (models/falcon_h1, FalconH1Mixer.forward@5.16.1)."""
    fp32_stream: bool = False
    """Whether its layer returns the residual stream in fp32 (models/mamba2, Mamba2Block.forward@5.16.1)."""


@record(eq=False)
class Mlp:
    """The feed-forward part of a block: dense if ``experts`` is 0, else routed experts of ``width`` each.

    ``shared_width`` is the summed width of the experts (or dense MLP) that every token passes next to the
    routed ones.
    """

    width: int
    gated: bool = True
    experts: int = 0
    experts_per_token: int = 0
    shared_width: int = 0
    latent: int = 0
    """Width of what the experts read, where that is not the hidden size."""
    thresholded: bool = False
    """Whether most of the gate is set to zero before its activation (models/gemma3n, Gemma3nTextMLP@5.16.1)."""


@record(eq=False)
class LinearShape:
    """A linear layer of a block: its last name (``q_proj``), widths in elements, part, and full path, if known."""

    name: str
    n_in: int
    n_out: int
    kind: Kind
    module: str = ""

    @property
    def path(self) -> str:
        """The full path, with ``*`` for the layer's index, or else the last name."""
        return self.module or self.name


@record(eq=False)
class Block:
    """``count`` decoder layers of one shape, with everything that a layer's activations depend on.

    ``norms`` counts the normalisations over ``hidden`` elements; ``norm`` is ``rms``, ``layer`` or ``none``.
    ``parameters`` are the elements of one layer. ``attention`` or ``mlp`` is None where the layer has none.
    """

    count: int
    hidden: int
    attention: Attention | None
    mlp: Mlp | None
    linears: tuple[LinearShape, ...]
    parameters: int
    norms: int = 2
    norm: Literal["rms", "layer", "none"] = "rms"
    states: StateSpace | None = None
    """Its Mamba mixer: in place of attention, or side by side with it."""
    traces: "tuple[LayerTrace, ...]" = ()
    """What such a layer was measured to keep, where its model was traced."""
    variant: "LayerVariant | None" = None
    """Its own, where it is no layer of the decoder."""
    narrow: bool = False
    """Whether it gets half precision where others of the model get fp32, which only layers before those return."""
