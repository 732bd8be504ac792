"""Run -> the model on the GPU: its weights in the order in which they come to lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.lora_targets import is_target, rank_at
from advisor.memory.reserved.decoder import Layer, Model
from advisor.memory.reserved.linears import Adapted, FourBit, Linear, Plain
from advisor.memory.reserved.operations import FULL
from advisor.memory.weights import storage
from advisor.models import Architecture, Block, Tensor
from advisor.models.architecture import Linear as Shape

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Tape
    from advisor.memory.reserved.autograd import Tensor as Memory
    from advisor.run import Run

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")


class Loader:
    """Makes the weights of a run."""

    def __init__(self, tape: Tape, run: Run, model: Architecture) -> None:
        self.tape, self.run, self.model = tape, run, model
        self.weights: list[Memory] = []
        self.widths = {tensor.module: self.width(tensor) for tensor in model.tensors}

    def width(self, tensor: Tensor) -> int:
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
        return self.weight(count, self.widths[module], trained=self.run.full_finetune)

    def linear(self, shape: Shape, *, bias: bool) -> Linear:
        """A linear layer, with its adapter if it gets one."""
        count = shape.n_in * shape.n_out
        if self.run.quantization == "nf4":
            kept = [self.weight(count // 2, 1, trained=False)]
            nested = self.run.double_quantization
            kept.append(self.tape.new(count // 64, 1 if nested else FULL))
            if nested:
                kept.append(self.tape.new(-(-count // 64 // 256), FULL))
            base: Plain | FourBit = FourBit(shape.n_in, shape.n_out, tuple(kept), nested=nested)
        else:
            weight = self.plain(count, shape.module)
            base = Plain(shape.n_in, shape.n_out, weight, self.plain(shape.n_out, shape.module) if bias else None)
        lora = self.run.lora
        if lora is None or not is_target(lora, shape):
            return base
        rank, width = rank_at(lora, shape.path), 4 if lora.fp32 else 2
        pair = (
            self.weight(rank * shape.n_in, width, trained=True),
            self.weight(rank * shape.n_out, width, trained=True),
        )
        return Adapted(base, rank, pair, dropout=lora.dropout > 0)

    def layer(self, block: Block, biased: set[str]) -> Layer:
        """One decoder layer: attention, MLP, norms."""
        shapes = {linear.name: linear for linear in block.linears}
        attention = block.attention
        assert attention is not None
        norm = next(module for module in self.widths if module.endswith("input_layernorm"))
        query, key, value, output = (self.linear(shapes[name], bias=name in biased) for name in ATTENTION)
        both = None
        if attention.query_key_norm:
            both = (self.plain(attention.head_dim, norm), self.plain(attention.head_dim, norm))
        gate, up, down = (self.linear(shapes[name], bias=name in biased) for name in MLP)
        norms = (self.plain(block.hidden, norm), self.plain(block.hidden, norm))
        return Layer(attention, query, key, value, output, gate, up, down, norms, both)

    def loaded(self) -> Model:
        """The whole model."""
        model, tensors = self.model, {tensor.kind: tensor for tensor in self.model.tensors}
        table = tensors["embedding"]
        biased = {t.module.rpartition(".")[2] for t in model.tensors if t.name.endswith("proj.bias")}
        embedding = self.plain(table.numel, table.module)
        layers = [self.layer(block, biased) for block in model.blocks for _ in range(block.count)]
        norm = self.plain(model.hidden_size, next(one for one in self.widths if one.endswith("model.norm")))
        head = embedding
        if not model.tied:
            head = self.plain(tensors["head"].numel, tensors["head"].module)
        asks = self.run.activation_checkpointing and self.run.adapter is not None
        return Model(
            embedding,
            model.hidden_size,
            layers,
            norm,
            Plain(model.hidden_size, model.vocab_size, head),
            self.weights,
            asks,
        )
