"""Run -> the model on the GPU: its weights in the order in which they come to lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Storage
from advisor.allocations.autograd.linears import Adapted, EightBit, FourBit, Linear, Plain
from advisor.allocations.autograd.norms import Norm
from advisor.allocations.autograd.operations import FULL, HALF
from advisor.memory.adapters import named
from advisor.memory.freezing import freezes_all
from advisor.memory.lora_targets import is_target, layers_named, rank_at
from advisor.memory.weight_groups import base_width
from advisor.memory.weights import quantized_width, storage
from advisor.models import Architecture, WeightShape
from advisor.models.blocks import LinearShape
from advisor.models.family import family_of
from advisor.record import replace
from advisor.run import Run

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.layers.decoder import Model
    from advisor.allocations.vision.towers import Towers
    from advisor.models.layer_variant import NormVariant

BEFORE = 2
"""Norms of a layer that has them before attention and MLP alone."""


class Loader:
    """Makes the weights of a run, first the model's, then the adapter's.

    transformers/modeling_utils.py, caching_allocator_warmup; core_model_loading.py@5.16.1: one block of all bytes
    comes first and is given back, and what is quantized arrives in half precision.
    """

    def __init__(self, tape: Tape, run: Run, model: Architecture) -> None:
        self.tape, self.run, self.model = tape, run, model
        self.taped = (family_of(model.decoder_type or model.model_type) or model.family).tape
        self.weights: list[Tensor] = []
        self.packed: list[Tensor] = []
        """Weights that bitsandbytes has quantized."""
        self.pieces: list[int] = []
        """How many events there were when each weight began to be loaded."""
        self.adapted: list[Adapted] = []
        self.final = {tensor.module: self.final_width(tensor) for tensor in model.tensors}
        self.index = -1
        """Of the layer that is being made."""
        self.to_cast: list[tuple[Tensor, int]] = []
        self.towers: Towers | None = None
        self.resting: list[Adapted] = []
        """Adapters on towers that do not compute, which nothing trains."""
        self.in_place = all(block.norms == BEFORE for block in model.blocks)
        """Whether Liger's norms write over gradients: liger_kernel/transformers/rms_norm.py@0.8.1."""

    def final_width(self, tensor: WeightShape) -> int:
        """Bytes of an element, as it lies in memory while it is trained."""
        return round(storage(self.run, self.model, tensor, self.run.full_finetune)[1])

    def weight(self, count: int, width: int, *, trained: bool) -> Tensor:
        """One tensor."""
        made = self.tape.new(count, width)
        made.trained = trained
        self.weights.append(made)
        return made

    def plain(self, count: int, module: str) -> Tensor:
        """A weight of the base model."""
        self.pieces.append(len(self.tape.events))
        made = self.weight(count, base_width(self.run), trained=self.run.full_finetune)
        if "norm" in module or "embed" in module or "head" in module:
            self.to_cast.append((made, self.final[module]))
        return made

    def linear(self, shape: LinearShape, *, bias: bool) -> Linear:
        """A linear layer, which may get an adapter."""
        count = shape.n_in * shape.n_out
        lora = self.run.lora
        base: Plain | FourBit | EightBit
        match self.run.quantization if self.quantizes(shape) else None:
            case "nf4":
                base = self.four_bit(shape, self.plain(shape.n_out, shape.module) if bias else None)
            case "int8":
                base = self.eight_bit(shape, self.plain(shape.n_out, shape.module) if bias else None)
            case _:
                weight = self.plain(count, shape.module)
                base = Plain(shape.n_in, shape.n_out, weight, self.plain(shape.n_out, shape.module) if bias else None)
        here = replace(shape, module=shape.module.replace("*", str(self.index)))
        if lora is None or not is_target(lora, here if layers_named(lora) else shape):
            return base
        self.adapted.append(Adapted(base, rank_at(lora, shape.path), dropout=lora.dropout > 0))
        return self.adapted[-1]

    def quantizes(self, shape: LinearShape) -> bool:
        """Whether bitsandbytes takes a linear layer."""
        tensor = WeightShape(f"{shape.module}.weight", shape.kind, (shape.n_out, shape.n_in), linear=True)
        return quantized_width(self.run, tensor) is not None

    def four_bit(self, shape: LinearShape, bias: Tensor | None) -> FourBit:
        """A quantized weight: 4 bits an element, and 8 or 32 for every 64."""
        count, nested = shape.n_in * shape.n_out, self.run.double_quantization
        self.pieces.append(len(self.tape.events))
        arrived = self.tape.new(count, HALF)
        kept = [self.tape.new(count // 2, 1), self.tape.new(count // 64, 1 if nested else FULL)]
        if nested:
            kept.append(self.tape.new(-(-count // 64 // 256), FULL))
        del arrived
        self.packed.append(kept[0])
        return FourBit(shape.n_in, shape.n_out, tuple(kept), bias, nested=nested)

    def eight_bit(self, shape: LinearShape, bias: Tensor | None) -> EightBit:
        """An 8-bit weight, quantized in fp16: transformers/integrations/bitsandbytes.py, Bnb8bitQuantize@5.16.1."""
        count = shape.n_in * shape.n_out
        self.pieces.append(len(self.tape.events))
        arrived, single = self.tape.new(count, HALF), self.tape.new(count, HALF)
        kept = (self.tape.new(shape.n_out, FULL), self.tape.new(count, 1))
        del arrived, single
        self.packed.append(kept[1])
        return EightBit(shape.n_in, shape.n_out, kept, bias)

    @property
    def norm_module(self) -> str:
        """A norm of the layers; all are cast alike."""
        return next(tensor.module for tensor in self.model.tensors if tensor.kind == "norm" and "*" in tensor.name)

    def norm(self, width: int, module: str, kind: NormVariant, *, bias: bool = False) -> Norm:
        """A norm's weight, and its bias."""
        weight = self.plain(width, module)
        return Norm(kind, weight, self.plain(width, module) if bias else None, self.in_place)

    def warm_up(self) -> None:
        """A block as large as the model, which is given back at once.

        Not where experts are quantized as they come: axolotl/monkeypatch/moe_quant.py:91-96@0.19.0.
        """
        if self.run.quantize_moe_experts:
            return
        size = 0
        for tensor in self.model.tensors:
            found = storage(self.run, self.model, tensor, False)[1]
            size += round(tensor.elements * (found if found < HALF else base_width(self.run)))
        warm = self.tape.new(size // HALF, HALF)
        del warm

    def prepare(self, model: Model) -> Model:
        """Makes of it what is trained: cast by axolotl, with its adapter, and with copies of whole modules."""
        if self.run.stack.trainer == "axolotl":
            self.cast(model)
        lora = self.run.lora
        if lora is None:
            return model
        modules = {tensor.kind: tensor.module for tensor in self.model.tensors}
        if named(lora.modules_to_save, modules["embedding"]):
            copy = self.trained_copy(model.embedding)
            copy.embedding = True
            model = replace(model, embedding=copy)
        width, trained = FULL if lora.fp32 else HALF, not freezes_all(self.run, self.model)
        for one in self.adapted:
            learns = trained and one not in self.resting
            one.a = self.weight(one.rank * one.n_in, width, trained=learns)
            one.b = self.weight(one.rank * one.n_out, width, trained=learns)
        if named(lora.modules_to_save, modules.get("head", "lm_head")):
            model.head.weight = self.trained_copy(model.head.weight)
        return model

    def trained_copy(self, weight: Tensor) -> Tensor:
        """The copy that is trained in place of a weight: peft/utils/other.py, ModulesToSaveWrapper@0.20.0."""
        return self.weight(weight.count, weight.width, trained=True)

    def cast(self, model: Model) -> None:
        """Embeddings, head and norms pass through fp32, or all that is not quantized, and of that the rest stays there.

        axolotl/loaders/model.py:436-489,1110-1146@0.19.0.
        """
        tables = (model.embedding, model.head.weight)
        wide = [weight for weight, width in self.to_cast if width == FULL or weight in tables]
        for weight in self.weights if self.run.upcasts_unquantized else wide:
            weight.storage = Storage(self.tape, weight.count * FULL)
            weight.width = FULL
        for weight, width in self.to_cast:
            if width != weight.width:
                weight.storage = Storage(self.tape, weight.count * width)
                weight.width = width
