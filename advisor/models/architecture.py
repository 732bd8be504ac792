"""What a model is made of, as far as memory is concerned: its tensors and its decoder blocks."""

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from advisor.models.blocks import Block, Kind, WeightShape
from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.family import Family
    from advisor.models.layer_variant import LayerVariant
    from advisor.models.tower import Tower
    from advisor.models.traced import ModelTrace


@record(eq=False)
class Architecture:
    """A model's inventory. Tied weights stand in ``tensors`` once, as the embedding."""

    name: str
    model_type: str
    hidden_size: int
    vocab_size: int
    tied: bool
    tensors: tuple[WeightShape, ...]
    blocks: tuple[Block, ...]
    max_position_embeddings: int | None = None
    class_name: str = ""
    dtype: str = "bfloat16"
    quantized: str | None = None
    """How the checkpoint itself is quantized (mxfp4, fp8, gptq, bitsandbytes ...); None where it is not."""
    source: str = ""
    """Where the config came from: a path, the Hugging Face cache, or the built-in catalogue."""
    supports_flash_attention: bool = True
    extra: tuple[str, ...] = field(default=())
    """Facts that a reader of the ledger should know, one sentence each."""
    trace: "ModelTrace | None" = None
    """Set where the model was traced: of what, and what it keeps outside of its layers."""
    decoder_type: str = ""
    """The model type of a multimodal model's decoder."""
    classes: int = 0
    """Outputs of a classifier, which has a score in place of its head; 0: a language model."""
    towers: "tuple[Tower, ...]" = ()
    """The encoders whose layers are known; others count as weights alone."""
    order: tuple[int, ...] = ()
    """Which of ``blocks`` each layer is, from the first to the last; empty where that is not known."""

    @cached_property
    def family(self) -> "Family":
        """The row of its model type; the defaults for one that no table has."""
        from advisor.models.family import UNKNOWN, family_of

        return family_of(self.model_type) or UNKNOWN

    @cached_property
    def variant(self) -> "LayerVariant":
        """What its decoder does differently from Llama's."""
        from advisor.models.family import variant_of

        return variant_of(self.decoder_type or self.model_type)

    @property
    def deviations(self) -> "LayerVariant":
        """``variant``, as rules of older releases ask for it."""
        return self.variant

    @property
    def outputs(self) -> int:
        """Numbers that the head gives for each token: the vocabulary's, or a classifier's."""
        return self.classes or self.vocab_size

    @cached_property
    def parameters(self) -> int:
        """Elements of all tensors, tied ones once."""
        return sum(tensor.elements for tensor in self.tensors)

    @cached_property
    def by_kind(self) -> dict[Kind, int]:
        """Elements by kind of tensor."""
        counts: dict[Kind, int] = {}
        for tensor in self.tensors:
            counts[tensor.kind] = counts.get(tensor.kind, 0) + tensor.elements
        return counts

    @cached_property
    def vocabulary_modules(self) -> frozenset[str]:
        """The last names of the embedding and the head."""
        modules = (tensor.module for tensor in self.tensors if tensor.kind in ("embedding", "head"))
        return frozenset(["lm_head", *(module.rsplit(".", 1)[-1] for module in modules)])

    @cached_property
    def has_experts(self) -> bool:
        """Whether any layer chooses among experts."""
        return any(block.mlp is not None and block.mlp.experts for block in self.blocks)

    @cached_property
    def layers(self) -> int:
        """Decoder layers."""
        return sum(block.count for block in self.blocks)

    @cached_property
    def in_order(self) -> tuple[Block, ...]:
        """The block of each layer, from the first to the last; one kind after another where the order is not known."""
        if len(self.order) == self.layers:
            return tuple(self.blocks[index] for index in self.order)
        return tuple(block for block in self.blocks for _ in range(block.count))

    @cached_property
    def reach(self) -> tuple[tuple[Block, int, int], ...]:
        """Each kind of layer, with the number of the first such layer and of the last, from 0 on."""
        numbers: dict[int, list[int]] = {}
        for number, block in enumerate(self.in_order):
            numbers.setdefault(id(block), []).append(number)
        return tuple((block, numbers[id(block)][0], numbers[id(block)][-1]) for block in self.blocks)

    @cached_property
    def largest_tensor(self) -> int:
        """Elements of the largest single tensor."""
        return max(tensor.numel for tensor in self.tensors)

    @property
    def approximated(self) -> bool:
        """Whether some blocks mix tokens in a way that the formulas know by widths alone and a trace knows better."""
        mixers = (block.attention for block in self.blocks if block.attention is not None)
        indexed = any(linear.name == "weights_proj" for block in self.blocks for linear in block.linears)
        return indexed or any(one.kind == "linear" and not one.state for one in mixers)
