"""A model family: one row for each ``model_type``, with everything that the advisor knows of it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from advisor.models.config import defaults_by_module
from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.layer_variant import LayerVariant
    from advisor.models.layout import Layout

LigerPart = Literal["loss", "rms_norm", "glu", "rope"]

NOTHING: frozenset[LigerPart] = frozenset()
LIGER: frozenset[LigerPart] = frozenset(["loss", "rms_norm", "glu", "rope"])
"""All that Liger fuses in a decoder. ``loss`` is the linear layer with its cross-entropy."""
LIGER_LOSS: frozenset[LigerPart] = frozenset(["loss"])
LIGER_LAYERS = LIGER - LIGER_LOSS
LIGER_WITHOUT_ROPE = LIGER - {"rope"}


@record(eq=False)
class Taped:
    """What of a layer changes the order of its allocations, not their sizes; the defaults are Llama's and Qwen 3's."""

    joins: Literal["", "each", "both", "both at once", "both kept"] = ""
    """Whether what is rotated is concatenated with what is not, and so what the kernel returns is copied.

    Queries before keys, as models/phi3 does; or both after both are rotated (models/gpt_neox), where names keep the
    rotated ones until both are joined (models/nemotron) or to the end (models/phi@5.16.1).
    """
    splits: bool = False
    """Whether one projection for all three is split by head, not cut (models/gpt_neox@5.16.1)."""
    norms: Literal["at once", "in turn", "after rotation", "before heads"] = "at once"
    """When the norms of queries and keys come: with each projection (models/qwen3), after all (models/gemma3), last
    (models/hunyuan_v1_dense), or over the whole projection before it is seen by head (models/olmo2@5.16.1)."""
    heads_last: bool = False
    """Whether projections are seen by head after the last of them: StableLmAttention.forward@5.16.1."""
    output_first: bool = False
    """Whether attention makes its last projection before the first: Phi3Attention.__init__@5.16.1."""
    norms_first: bool = False
    """Whether a layer makes its norms first: GPTNeoXLayer.__init__@5.16.1."""
    scales_embedding: Literal["", "inside", "after"] = ""
    """Whether the embedding's output is multiplied, in its module (models/gemma3/modeling_gemma3.py,
    Gemma3TextScaledWordEmbedding@5.16.1) or after it (models/granite/modeling_granite.py, GraniteModel.forward)."""
    holds: bool = False
    """Whether names keep the first norm's and attention's output to the end: StableLmDecoderLayer.forward@5.16.1."""
    tables: Literal["cast", "fp32", "interleaved", "sections", "none"] = "cast"
    """How layers get cosines and sines: in the stream's precision, in fp32 (models/olmo3), or so that each makes
    interleaved copies of its own (models/glm4), or joins sections of three axes (models/qwen2_vl@5.16.1); or there
    are none."""
    axes: Literal["", "apart", "joined", "written over"] = ""
    """Whether positions have three axes, and rows positions of their own: tables of each (models/qwen2_vl), or of
    angles that are joined (models/glm4v) or written into the first axis' (models/qwen3_5@5.16.1)."""
    scales_queries: bool = False
    """Whether rotated queries are scaled by their positions: Ministral3Attention.forward@5.16.1."""
    routes: Literal[
        "", "grouped sigmoid", "grouped softmax", "sigmoid shares", "softmax", "softmax shares", "softmax fp32 shares"
    ] = ""
    """How tokens choose their experts."""
    widens_logits: bool = False
    """Whether the model itself casts logits to fp32: NemotronHForCausalLM.forward@5.16.1."""
    scales_keys: bool = False
    """Whether keys are multiplied by a number: FalconH1Attention.forward@5.16.1."""
    tables_by_kind: bool = False
    """Whether sliding layers have tables of positions of their own: Gemma3TextModel.forward@5.16.1.

    Tapes have the layers by their kinds, and so let go of those tables a few layers sooner or later.
    """


LIKE_LLAMA = Taped()


@record(eq=False)
class Family:
    """What the libraries do with models of one ``model_type``; the defaults are Llama's but for Liger and CCE.

    A field's source stands with it: the one list or the one line that all rows are read from. Facts of the
    outer class (loss, kernels, names) stand in a multimodal model's own row, those of its layers in its
    decoder's.
    """

    layout: Layout | None = None
    """How its tensors are counted. None: it is not, and transformers must be asked (``--trace``)."""
    liger: frozenset[LigerPart] = NOTHING
    """What axolotl's Liger plugin fuses in the decoder, and neither skips with a warning nor refuses.

    axolotl/integrations/liger/plugin.py:187-242@0.19.0 calls the function that Liger has for the type without a
    model (liger_kernel/transformers/monkey_patch.py:3534-3585@0.8.1), or patches by itself (:243-530).
    """
    cut: bool = False
    """Whether the fork of cut cross-entropy has a patch of its own: integrations/cut_cross_entropy/README.md@0.19.0."""
    lora_kernels: Literal["work", "unpatchable", "unbound", "need half-precision norms"] = "work"
    """Whether axolotl's LoRA kernels for attention run.

    ``unpatchable``: axolotl does not find the attention class, or does not recognise its code, and stops
    (axolotl/monkeypatch/lora_kernels.py:130-220,303-306@0.19.0). ``unbound``: patched, but not where axolotl then
    looks for it (:317-325). The last: under autocast ``nn.LayerNorm`` gives fp32, and the kernels add a
    half-precision product to it in place (axolotl/kernels/lora.py:265-273@0.19.0).
    """
    sdpa: bool = True
    """``_supports_sdpa`` of its class@transformers 5.16.1. Without it eager is the default, and sdpa by name raises."""
    flash_attention: bool = True
    """``_supports_flash_attn`` of the decoder's class@transformers 5.16.1."""
    flash_stand_in: str = ""
    """What ``flash_attention_2`` becomes, if anything else: transformers/modeling_utils.py:1829-1843@5.16.1."""
    xformers: Literal["runs", "has no class", "asks for key heads"] = "runs"
    """What becomes of axolotl's xformers attention: some pick a class by its name and have none (models/falcon,
    FALCON_ATTENTION_CLASSES@5.16.1), of others it asks the config for a number of key heads that it does not have
    (axolotl/monkeypatch/attention/xformers.py:55-57@0.19.0)."""
    hybrid_attention: bool = False
    """Whether ``gemma4_hybrid_attn_impl`` is for it: axolotl/loaders/patch_manager.py:285-371@0.19.0."""
    mask_taken_out: bool = False
    """Whether the trainer takes the mask of packed rows out whatever the kernel.

    axolotl/core/trainers/base.py:431-437@0.19.0.
    """
    checkpoints: Literal["any", "non-reentrant", "none", "without effect"] = "any"
    """Which activation checkpoints axolotl lets it have: utils/config/__init__.py:403-417,
    utils/schemas/validation.py:1562-1574@0.19.0. ``without effect``: its layers take no notice of the setting."""
    linear_experts: bool = False
    """Whether axolotl's own copy of its code has a linear layer for each expert, whatever the transformers."""
    expert_linears: tuple[str, ...] = ()
    """What the first expert's linear layers are called where each expert has its own: before transformers 5, or in
    axolotl's own code. Read from transformers 4.57.1."""
    expert_targets: tuple[str, str, str] | tuple[()] = ()
    """What LoRA's targets call the gate, the up and the down projection of experts where PEFT knows to move them to
    stacks: transformers/conversion_mapping.py:42-68@5.16.1; peft/utils/transformers_weight_conversion.py@0.20.0."""
    merges_experts: bool = False
    """Whether checkpoints have each expert by itself, and transformers stacks them as it loads: WeightConverter with
    MergeModulelist, transformers/conversion_mapping.py@5.16.1. False where they are published stacked."""
    own_code_stops: bool = False
    """Whether that copy stops at an import under transformers 5.16.1, which axolotl 0.19.0 pins."""
    soft_capped: bool = False
    """Whether logits are capped: tanh keeps its output (models/gemma2/modeling_gemma2.py@5.16.1)."""
    scales_logits: bool = False
    """Whether logits are multiplied or divided by a number of the config (models/cohere, models/granite@5.16.1)."""
    has_tapes: bool = False
    """Whether layers like its own were recorded for the replay of torch's allocator: tests/allocations."""
    has_liger_tapes: bool = False
    """Whether tapes have its layers as Liger patches them: liger_kernel/transformers/monkey_patch.py@0.8.1."""
    text_is_taped: bool = False
    """Whether it was recorded that a multimodal model does with text alone what its decoder does."""
    vision_tower: Literal[
        "",
        "pooled",
        "shuffled",
        "unshuffled",
        "projected",
        "two linears",
        "merged",
        "by place",
        "in windows",
        "downsampled",
    ] = ""
    """How patches become tokens of the decoder, where it was recorded: averaged (models/gemma3), four at once in one
    of two orders (models/internvl, models/lfm2_vl), nine at once (models/smolvlm), one by one (models/llava with
    Pixtral's encoder), or four at once as a convolution reads them (models/mistral3@5.16.1).

    Or by the encoder itself, which knows their places in an image (models/qwen2_vl), sees most of them in windows
    (models/qwen2_5_vl), or ends in a convolution (models/glm4v@5.16.1).
    """
    own_loss: bool = False
    """Whether it computes the loss of copies of its logits, and of those alone that a mask leaves, if it gets one.

    models/gemma3/modeling_gemma3.py, Gemma3ForConditionalGeneration.forward@5.16.1.
    """
    tape: Taped = LIKE_LLAMA
    """In which order its layers allocate."""
    common_loss_since: str = ""
    """The transformers from which on the model calls the common loss; before, it had one in the logits' precision.

    models/gpt_bigcode/modeling_gpt_bigcode.py:1177-1186@4.48.1.
    """
    keeps_cache_until: str = ""
    """The transformers from which on checkpointed layers make no cache; before, each handed its keys and values back.

    models/gpt_bigcode/modeling_gpt_bigcode.py:912-950@4.48.1; modeling_layers.py:56-58@4.53.3.
    """
    one_model_since: str = ""
    """The transformers from which on the parts of a multimodal model are modules of its ``model``; it had no such."""
    embedding_modules: tuple[str, str] = ("embed_tokens", "lm_head")
    """What axolotl takes for embedding and head: axolotl/loaders/utils.py:306-316@0.19.0."""
    head_module: bool = True
    """False where a tied model multiplies by the embedding itself, and no name could find a head."""
    upcast_for_lora: bool = True
    """Whether PEFT's upcast comes before LoRA: axolotl/loaders/model.py:1116-1121@0.19.0."""
    whole_linears: tuple[str, ...] = ()
    """Linear layers that axolotl has bitsandbytes leave as they are, by the ends of their names; it names no head then.

    axolotl/loaders/model.py:819-821,836-838@0.19.0; transformers/quantizers/base.py:234-253@5.16.1.
    """
    packing_patch_broken: bool = False
    """Whether axolotl's patch for its packed rows asks for what transformers no longer has, and stops.

    axolotl/monkeypatch/models/granitemoehybrid/modeling.py:65-78@0.19.0; its class@5.16.1 has no such function.
    """
    image_mask: bool = False
    """Whether an image's tokens see each other both ways, by a mask that FlashAttention does not take.

    models/gemma3/modeling_gemma3.py:698-757, paligemma/modeling_paligemma.py:257-259, masking_utils.py:607-647@5.16.1.
    """
    router_returns_choice: bool = False
    """Whether its router is a linear layer that returns its choice as well, which PEFT cannot wrap.

    transformers/models/llama4/modeling_llama4.py, Llama4Router, and models/phimoe/modeling_phimoe.py@5.16.1.
    """
    absent_leaf: str = ""
    """The class that axolotl marks as a leaf under ZeRO-3 and that transformers calls otherwise.

    axolotl/common/architectures.py:5-30@0.19.0.
    """
    expert_leaf: str = ""
    """Likewise, a class that only those models of the family have that route to experts."""

    @property
    def shapes_logits(self) -> bool:
        """Whether the model does more to its logits than its head does, which a loss of the head alone leaves out."""
        return self.soft_capped or self.scales_logits


UNKNOWN = Family()
EXPERT_MLP = ("0.gate_proj", "0.up_proj", "0.down_proj")
EXPERT_W = ("0.w1", "0.w3", "0.w2")
MLP_TARGETS = ("gate_proj", "up_proj", "down_proj")
W_TARGETS = ("w1", "w3", "w2")


def home(model_type: str) -> str:
    """The module whose table holds a model type; empty if none does."""
    return homes().get(model_type, "")


@cache
def homes() -> dict[str, str]:
    """Which module's table holds which type: the groups of ``defaults.json``, so that only that one is loaded."""
    return {one: module for module, types in defaults_by_module().items() if module for one in types}


def family_of(model_type: str) -> Family | None:
    """The row of a model type; None if no table has it."""
    module = home(model_type)
    return table(module)[model_type] if module else None


def table(module: str) -> dict[str, Family]:
    """The rows of a module of this package."""
    return import_module(f"advisor.models.{module}").FAMILIES


def families() -> dict[str, Family]:
    """All rows: for what is asked of no model in particular, since it loads every table."""
    return {one: row for module in sorted(set(homes().values())) for one, row in table(module).items()}


def variant_of(model_type: str) -> LayerVariant:
    """What the decoder of a model type does differently from Llama's."""
    from advisor.models.layer_variant import LLAMA

    family = family_of(model_type)
    if family is None or family.layout is None:
        return LLAMA
    return family.layout.variant
