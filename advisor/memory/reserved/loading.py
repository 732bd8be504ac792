"""Run -> the model on the GPU: its weights in the order in which they come to lie there."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from advisor.memory.activations import lora_kernels
from advisor.memory.activations.deviations import family_and_norm
from advisor.memory.adapters import named
from advisor.memory.freezing import freezes_all
from advisor.memory.groups import base_width
from advisor.memory.lora_targets import is_target, layers_named, rank_at
from advisor.memory.reserved.autograd import Storage
from advisor.memory.reserved.convolutions import convolved
from advisor.memory.reserved.decoder import Model
from advisor.memory.reserved.delta_nets import DeltaNet, delta_net
from advisor.memory.reserved.deviations import activation_of, order_of
from advisor.memory.reserved.gated import GatedMixer
from advisor.memory.reserved.heads import head_of
from advisor.memory.reserved.hybrids import side_by_side
from advisor.memory.reserved.latents import Latent, latent
from advisor.memory.reserved.layers import Feed, FusedGated, Gated, Layer
from advisor.memory.reserved.layers import Plain as PlainFeed
from advisor.memory.reserved.linears import Adapted, EightBit, FourBit, Linear, Plain
from advisor.memory.reserved.mixer import Mixer, turned
from advisor.memory.reserved.norms import Norm
from advisor.memory.reserved.operations import FULL, HALF
from advisor.memory.reserved.routers import routed
from advisor.memory.reserved.scores import score_of
from advisor.memory.reserved.seeing import sight_of
from advisor.memory.reserved.single import single
from advisor.memory.reserved.towers import Towers, beside
from advisor.memory.reserved.xielu import Xielu
from advisor.memory.weights import quantized_width, storage
from advisor.models import Architecture, Block, Tensor
from advisor.models.architecture import Linear as Shape
from advisor.models.deviations import XIELU
from advisor.models.family import family_of
from advisor.record import replace
from advisor.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.memory.reserved.autograd import Tape
    from advisor.memory.reserved.autograd import Tensor as Memory
    from advisor.memory.reserved.decoder import AnyLayer
    from advisor.models.deviations import Deviations
    from advisor.models.deviations import Norm as Kind

Attends = Mixer | Latent | DeltaNet
GATED = 3
"""Linears of an MLP with a gate of its own."""
BEFORE = 2
"""Norms of a layer that has them before attention and MLP alone."""
FUSED = {"qkv": "q_proj", "o": "o_proj", "mlp": "down_proj"}


class Loader:
    """Makes the weights of a run, first the model's, then the adapter's.

    transformers/modeling_utils.py, caching_allocator_warmup; core_model_loading.py@5.16.1: one block of all bytes
    comes first and is given back, and what is quantized arrives in half precision.
    """

    def __init__(self, tape: Tape, run: Run, model: Architecture) -> None:
        self.tape, self.run, self.model = tape, run, model
        self.taped = (family_of(model.decoder_type or model.model_type) or model.family).tape
        self.weights: list[Memory] = []
        self.packed: list[Memory] = []
        """Weights that bitsandbytes has quantized."""
        self.pieces: list[int] = []
        """How many events there were when each weight began to be loaded."""
        self.adapted: list[Adapted] = []
        self.final = {tensor.module: self.final_width(tensor) for tensor in model.tensors}
        self.index = -1
        """Of the layer that is being made."""
        self.to_cast: list[tuple[Memory, int]] = []
        self.towers: Towers | None = None
        self.resting: list[Adapted] = []
        """Adapters on towers that do not compute, which nothing trains."""
        self.in_place = all(block.norms == BEFORE for block in model.blocks)
        """Whether Liger's norms write over gradients: liger_kernel/transformers/rms_norm.py@0.8.1."""

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

    def quantizes(self, shape: Shape) -> bool:
        """Whether bitsandbytes takes a linear layer."""
        tensor = Tensor(f"{shape.module}.weight", shape.kind, (shape.n_out, shape.n_in), linear=True)
        return quantized_width(self.run, tensor) is not None

    def four_bit(self, shape: Shape, bias: Memory | None) -> FourBit:
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

    def eight_bit(self, shape: Shape, bias: Memory | None) -> EightBit:
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

    def norm(self, width: int, module: str, kind: Kind, *, bias: bool = False) -> Norm:
        """A norm's weight, and its bias."""
        weight = self.plain(width, module)
        return Norm(kind, weight, self.plain(width, module) if bias else None, self.in_place)

    def layer(self, block: Block, biased: set[str], kind: int = 0) -> AnyLayer:
        """One decoder layer: attention, MLP, norms."""
        self.index += 1
        if block.norms == 1 and (block.attention is None) != (block.mlp is None):
            return single(self, block, biased)
        if block.states is not None:
            return side_by_side(self, block, biased)
        if block.attention is not None and block.attention.kind == "conv":
            return convolved(self, block, biased)
        deviations, norm_kind = family_and_norm(self.run, block)
        norm = self.norm_module
        with_bias = f"{norm}.bias" in {tensor.name for tensor in self.model.tensors}

        def norms() -> tuple[Norm, ...]:
            return tuple(self.norm(block.hidden, norm, norm_kind, bias=with_bias) for _ in range(block.norms))

        first = norms() if self.taped.norms_first else ()
        taken = lora_kernels.fused(self.run, block)
        kernels = frozenset(kernel for kernel, linear in FUSED.items() if linear in taken)
        mixer = self.mixer(block, biased, norm_kind, kernels)
        feed = self.feed(block, biased, deviations, "mlp" in kernels)
        if not isinstance(mixer, DeltaNet):
            mixer = replace(mixer, drops=deviations.residual_masks > 0)
        if isinstance(mixer, Mixer):
            mixer = replace(mixer, liger="rope" in self.run.liger)
        return Layer(
            mixer,
            feed,
            first or norms(),
            order_of(block, deviations, holds=self.taped.holds),
            kind,
            scales=deviations.scales_residual,
        )

    def mixer(self, block: Block, biased: set[str], norm_kind: Kind, kernels: frozenset[str]) -> Attends:
        """Attention."""
        attention = block.attention
        assert attention is not None, "coverage.is_plain"
        if attention.kind == "latent":
            return latent(self, block, biased)
        if attention.kind == "linear":
            return delta_net(self, block)
        shapes = [linear for linear in block.linears if linear.kind == "attention"]
        if self.taped.output_first:
            output, *inputs = (self.linear(shape, bias=shape.name in biased) for shape in (shapes[-1], *shapes[:-1]))
        else:
            *inputs, output = (self.linear(shape, bias=shape.name in biased) for shape in shapes)
        both = None
        if attention.query_key_norm:
            norm = self.norm_module
            wide = self.taped.norms == "before heads"
            widths = (attention.query_width, attention.key_width) if wide else (attention.head_dim,) * 2
            both = self.norm(widths[0], norm, norm_kind), self.norm(widths[1], norm, norm_kind)
        kind = GatedMixer if attention.gated else Mixer
        return kind(attention, tuple(inputs), output, both, kernels, self.taped)

    def feed(self, block: Block, biased: set[str], deviations: Deviations, fused: bool) -> Feed:
        """The MLP, or experts."""
        if block.mlp is not None and block.mlp.experts:
            return routed(self, block, biased)
        shapes = [linear for linear in block.linears if linear.kind == "mlp"]
        linears = [self.linear(shape, bias=shape.name in biased) for shape in shapes]
        drops = deviations.residual_masks > 0
        assert block.mlp is not None, "coverage.is_plain"
        if len(linears) == GATED:
            gate, up, down = linears
            return Gated(gate, up, down, fused, drops, "glu" in self.run.liger)
        up, down = linears
        if block.mlp.gated:
            return FusedGated(up, down)
        if deviations.activation == XIELU:
            numbers = [self.plain(1, "mlp.act_fn") for _ in range(2)]
            return PlainFeed(up, down, Xielu(*numbers), drops)
        return PlainFeed(up, down, activation_of(deviations), drops)

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

    def base(self) -> Model:
        """The model as transformers loads it."""
        self.warm_up()
        self.towers = Towers(self)
        sight = sight_of(self.run, self.model, self.towers)
        self.resting = [] if sight else list(self.adapted)
        model, tensors = self.model, {tensor.kind: tensor for tensor in reversed(self.model.tensors)}
        table = tensors["embedding"]
        biased = {t.module.rpartition(".")[2] for t in model.tensors if t.name.endswith(".bias") and not beside(t)}
        embedding = self.plain(table.numel, table.module)
        embedding.embedding = True
        windows = [block.attention and block.attention.window for block in model.blocks]
        kinds = len(set(windows)) if self.taped.tables_by_kind else 1
        each = [
            (block, int(kinds > 1 and window is not None))
            for block, window in zip(model.blocks, windows, strict=True)
            for _ in range(block.count)
        ]
        if model.deviations.casts_stream:
            each = in_turn(each)
        layers = [self.layer(block, biased, kind) for block, kind in each]
        ends = next(t.module for t in model.tensors if t.kind == "norm" and "*" not in t.name)
        norm = self.norm(model.hidden_size, ends, layers[0].norms[0].kind, bias=layers[0].norms[0].bias is not None)
        asks = self.run.asks_for_gradients
        last = head_of(self, embedding, bool({"lm_head", "score"} & biased))
        return Model(
            embedding,
            model.hidden_size,
            layers,
            norm,
            last,
            self.weights,
            asks_for_gradients=asks,
            score=score_of(self.run),
            scales_embedding=self.taped.scales_embedding,
            fp32_tables=self.taped.tables == "fp32",
            windowed=windows[0] is not None,
            axes=self.taped.axes,
            kinds=kinds,
            sight=sight,
            turned=self.turned(layers),
        )

    def turned(self, layers: Sequence[AnyLayer]) -> int:
        """Elements of a head that are rotated."""
        if self.taped.tables == "none":
            return 0
        return next(turned(layer.mixer.attention) for layer in layers if isinstance(layer.mixer, Mixer | Latent))

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

    def trained_copy(self, weight: Memory) -> Memory:
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


def in_turn(layers: list[tuple[Block, int]]) -> list[tuple[Block, int]]:
    """One layer of each kind after the other, as far as there are any: experts make the stream wide, and come soon.

    models/nemotron_h/modeling_nemotron_h.py, NemotronHMoE.forward@5.16.1.
    """
    seen: dict[Block, int] = {}
    rounds: list[tuple[int, tuple[Block, int]]] = []
    for layer in layers:
        seen[layer[0]] = seen.get(layer[0], 0) + 1
        rounds.append((seen[layer[0]], layer))
    return [layer for _, layer in sorted(rounds, key=itemgetter(0))]
