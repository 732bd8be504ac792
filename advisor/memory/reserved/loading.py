"""Run -> the model on the GPU: its weights in the order in which they come to lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.activations import lora_kernels
from advisor.memory.groups import base_width
from advisor.memory.lora_targets import is_target, rank_at
from advisor.memory.reserved.autograd import Storage
from advisor.memory.reserved.decoder import Layer, Model
from advisor.memory.reserved.linears import Adapted, EightBit, FourBit, Linear, Plain
from advisor.memory.reserved.operations import FULL, HALF
from advisor.memory.reserved.scores import score_of
from advisor.memory.weights import storage
from advisor.models import Architecture, Block, Tensor
from advisor.models.architecture import Linear as Shape
from advisor.run import Run

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Tape
    from advisor.memory.reserved.autograd import Tensor as Memory

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")


FUSED = {"qkv": "q_proj", "o": "o_proj", "mlp": "down_proj"}


class Loader:
    """Makes the weights of a run, first the model's, then the adapter's.

    transformers/modeling_utils.py, caching_allocator_warmup; core_model_loading.py@5.16.1: one block of all bytes
    comes first and is given back, and what is quantized arrives in half precision.
    """

    def __init__(self, tape: Tape, run: Run, model: Architecture) -> None:
        self.tape, self.run, self.model = tape, run, model
        self.weights: list[Memory] = []
        self.pieces: list[int] = []
        """How many events there were when each weight began to be loaded."""
        self.adapted: list[Adapted] = []
        self.final = {tensor.module: self.final_width(tensor) for tensor in model.tensors}
        self.to_cast: list[tuple[Memory, int]] = []

    def final_width(self, tensor: Tensor) -> int:
        """Bytes of an element, as it lies in memory while it is trained."""
        return round(storage(self.run, self.model, tensor, self.run.full_finetune)[1])

    def weight(self, count: int, width: int, *, trained: bool) -> Memory:
        """One tensor."""
        made = self.tape.new(count, width)
        made.trained = trained
        self.weights.append(made)
        return made

    def plain(self, count: int, module: str) -> Memory:
        """A weight of the base model."""
        self.pieces.append(len(self.tape.events))
        made = self.weight(count, base_width(self.run), trained=self.run.full_finetune)
        if "norm" in module or "embed" in module or "head" in module:
            self.to_cast.append((made, self.final[module]))
        return made

    def linear(self, shape: Shape, *, bias: bool) -> Linear:
        """A linear layer, which may get an adapter."""
        count = shape.n_in * shape.n_out
        lora = self.run.lora
        base: Plain | FourBit | EightBit
        match self.run.quantization:
            case "nf4":
                base = self.four_bit(shape, self.plain(shape.n_out, shape.module) if bias else None)
            case "int8":
                base = self.eight_bit(shape, self.plain(shape.n_out, shape.module) if bias else None)
            case _:
                weight = self.plain(count, shape.module)
                base = Plain(shape.n_in, shape.n_out, weight, self.plain(shape.n_out, shape.module) if bias else None)
        if lora is None or not is_target(lora, shape):
            return base
        self.adapted.append(Adapted(base, rank_at(lora, shape.path), dropout=lora.dropout > 0))
        return self.adapted[-1]

    def four_bit(self, shape: Shape, bias: Memory | None) -> FourBit:
        """A quantized weight: 4 bits an element, and 8 or 32 for every 64."""
        count, nested = shape.n_in * shape.n_out, self.run.double_quantization
        self.pieces.append(len(self.tape.events))
        arrived = self.tape.new(count, HALF)
        kept = [self.tape.new(count // 2, 1), self.tape.new(count // 64, 1 if nested else FULL)]
        if nested:
            kept.append(self.tape.new(-(-count // 64 // 256), FULL))
        del arrived
        return FourBit(shape.n_in, shape.n_out, tuple(kept), bias, nested=nested)

    def eight_bit(self, shape: Shape, bias: Memory | None) -> EightBit:
        """An 8-bit weight, quantized in fp16: transformers/integrations/bitsandbytes.py, Bnb8bitQuantize@5.16.1."""
        count = shape.n_in * shape.n_out
        self.pieces.append(len(self.tape.events))
        arrived, single = self.tape.new(count, HALF), self.tape.new(count, HALF)
        kept = (self.tape.new(shape.n_out, FULL), self.tape.new(count, 1))
        del arrived, single
        return EightBit(shape.n_in, shape.n_out, kept, bias)

    def layer(self, block: Block, biased: set[str]) -> Layer:
        """One decoder layer: attention, MLP, norms."""
        shapes = {linear.name: linear for linear in block.linears}
        attention = block.attention
        assert attention is not None, "coverage.is_plain"
        norm = next(module for module in self.final if module.endswith("input_layernorm"))
        query, key, value, output = (self.linear(shapes[name], bias=name in biased) for name in ATTENTION)
        both = None
        if attention.query_key_norm:
            both = (self.plain(attention.head_dim, norm), self.plain(attention.head_dim, norm))
        gate, up, down = (self.linear(shapes[name], bias=name in biased) for name in MLP)
        norms = (self.plain(block.hidden, norm), self.plain(block.hidden, norm))
        taken = lora_kernels.fused(self.run, block)
        kernels = frozenset(kernel for kernel, name in FUSED.items() if name in taken)
        return Layer(attention, query, key, value, output, gate, up, down, norms, both, kernels)

    def warm_up(self) -> None:
        """A block as large as the model, which is given back at once."""
        size = 0
        for tensor in self.model.tensors:
            found = storage(self.run, self.model, tensor, False)[1]
            size += round(tensor.elements * (found if found < HALF else base_width(self.run)))
        warm = self.tape.new(size // HALF, HALF)
        del warm

    def base(self) -> Model:
        """The model as transformers loads it."""
        self.warm_up()
        model, tensors = self.model, {tensor.kind: tensor for tensor in self.model.tensors}
        table = tensors["embedding"]
        biased = {t.module.rpartition(".")[2] for t in model.tensors if t.name.endswith("proj.bias")}
        embedding = self.plain(table.numel, table.module)
        embedding.embedding = True
        layers = [self.layer(block, biased) for block in model.blocks for _ in range(block.count)]
        norm = self.plain(model.hidden_size, next(one for one in self.final if one.endswith("model.norm")))
        head = embedding if model.tied else self.plain(tensors["head"].numel, tensors["head"].module)
        asks = self.run.activation_checkpointing and self.run.adapter is not None
        last = Plain(model.hidden_size, model.vocab_size, head)
        return Model(embedding, model.hidden_size, layers, norm, last, self.weights, asks, score_of(self.run))

    def prepare(self, model: Model) -> None:
        """Makes of it what is trained: cast by axolotl, with its adapter."""
        if self.run.stack.trainer == "axolotl":
            self.cast(model)
        for one in self.adapted:
            lora = self.run.lora
            assert lora is not None, "there are adapters"
            width = FULL if lora.fp32 else HALF
            one.a = self.weight(one.rank * one.n_in, width, trained=True)
            one.b = self.weight(one.rank * one.n_out, width, trained=True)

    def cast(self, model: Model) -> None:
        """Embeddings, head and norms pass through fp32: axolotl/loaders/model.py:436-489@0.19.0."""
        tables = (model.embedding, model.head.weight)
        for weight, width in self.to_cast:
            if width == FULL or weight in tables:
                weight.storage = Storage(self.tape, weight.count * FULL)
                weight.width = FULL
        for weight, width in self.to_cast:
            if width != weight.width:
                weight.storage = Storage(self.tape, weight.count * width)
                weight.width = width
