"""Run -> the model as transformers loads it: embedding, layers, norm and head in the order of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.layers.convolutions import Convolution, Convolved
from advisor.allocations.layers.decoder import Model
from advisor.allocations.layers.delta_nets import DeltaNet
from advisor.allocations.layers.heads import head_of
from advisor.allocations.layers.latents import Latent
from advisor.allocations.layers.layers import Layer
from advisor.allocations.layers.mixer import Mixer, rotary_dim
from advisor.allocations.layers.order import order_of
from advisor.allocations.layers.parts import feed_of, mixer_of
from advisor.allocations.losses.scores import score_of
from advisor.allocations.step.hybrids import side_by_side
from advisor.allocations.step.nemotron_h import single
from advisor.allocations.vision.image_inputs import vision_tower_of
from advisor.allocations.vision.towers import Towers, is_outside_decoder
from advisor.memory.activations import lora_kernels
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.models.layer_variant import LLAMA
from advisor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.layers.decoder import AnyLayer
    from advisor.allocations.layers.loading import Loader
    from advisor.models import Block

FUSED = {"qkv": "q_proj", "o": "o_proj", "mlp": "down_proj"}


def base_model(loader: Loader) -> Model:
    """The model as transformers loads it."""
    loader.warm_up()
    loader.towers = Towers(loader)
    vision_tower = vision_tower_of(loader.run, loader.model, loader.towers)
    loader.resting = [] if vision_tower else list(loader.adapted)
    model, tensors = loader.model, {tensor.kind: tensor for tensor in reversed(loader.model.tensors)}
    table = tensors["embedding"]
    biased = {
        t.module.rpartition(".")[2] for t in model.tensors if t.name.endswith(".bias") and not is_outside_decoder(t)
    }
    embedding = loader.plain(table.numel, table.module)
    embedding.embedding = True
    windows = {block: block.attention and block.attention.window for block in model.blocks}
    kinds = len(set(windows.values())) if loader.taped.tables_by_kind else 1
    each = [(block, int(kinds > 1 and windows[block] is not None)) for block in model.in_order]
    layers = [_layer_of(loader, block, biased, kind) for block, kind in each]
    ends = next(t.module for t in model.tensors if t.kind == "norm" and "*" not in t.name)
    norm = loader.norm(model.hidden_size, ends, layers[0].norms[0].kind, bias=layers[0].norms[0].bias is not None)
    asks = loader.run.asks_for_gradients
    last = head_of(loader, embedding, bool({"lm_head", "score"} & biased))
    return Model(
        embedding,
        model.hidden_size,
        layers,
        norm,
        last,
        loader.weights,
        asks_for_gradients=asks,
        score=score_of(loader.run),
        scales_embedding=loader.taped.scales_embedding,
        fp32_tables=loader.taped.tables == "fp32",
        windowed=windows[model.blocks[0]] is not None,
        axes=loader.taped.axes,
        kinds=kinds,
        vision_tower=vision_tower,
        rotary_dim=_rotary_dim_of(loader, layers),
    )


def _layer_of(loader: Loader, block: Block, biased: set[str], kind: int = 0) -> AnyLayer:
    """One decoder layer: attention, MLP, norms."""
    loader.index += 1
    if block.norms == 1 and (block.attention is None) != (block.mlp is None):
        return single(loader, block, biased)
    if block.states is not None:
        return side_by_side(loader, block, biased)
    if block.attention is not None and block.attention.kind == "conv":
        return convolved(loader, block, biased)
    variant, norm_kind = family_and_norm(loader.run, block)
    norm = loader.norm_module
    with_bias = f"{norm}.bias" in {tensor.name for tensor in loader.model.tensors}

    def norms() -> tuple[Norm, ...]:
        return tuple(loader.norm(block.hidden, norm, norm_kind, bias=with_bias) for _ in range(block.norms))

    first = norms() if loader.taped.norms_first else ()
    taken = lora_kernels.fused(loader.run, block)
    kernels = frozenset(kernel for kernel, linear in FUSED.items() if linear in taken)
    mixer = mixer_of(loader, block, biased, norm_kind, kernels)
    feed = feed_of(loader, block, biased, variant, "mlp" in kernels)
    if not isinstance(mixer, DeltaNet):
        mixer = replace(mixer, drops=variant.residual_masks > 0)
    if isinstance(mixer, Mixer):
        mixer = replace(mixer, liger="rope" in loader.run.liger)
    return Layer(
        mixer,
        feed,
        first or norms(),
        order_of(block, variant, holds=loader.taped.holds),
        kind,
        scales=variant.scales_residual,
    )


def convolved(loader: Loader, block: Block, biased: set[str]) -> Convolved:
    """A layer with a short convolution, with its weights in the order of its modules."""
    shapes = {shape.name: shape for shape in block.linears}
    tensors = {t.name.rpartition(".conv.conv.")[2]: t for t in loader.model.tensors if ".conv.conv." in t.name}
    bias = tensors.get("bias")
    mixer = Convolution(
        loader.plain(tensors["weight"].numel, "conv"),
        None if bias is None else loader.plain(bias.numel, "conv"),
        loader.linear(shapes["in_proj"], bias="in_proj" in biased),
        loader.linear(shapes["out_proj"], bias="out_proj" in biased),
    )
    feed = feed_of(loader, block, biased, LLAMA, fused=False)
    norms = tuple(loader.norm(block.hidden, loader.norm_module, "rms") for _ in range(block.norms))
    return Convolved(mixer, feed, norms)


def _rotary_dim_of(loader: Loader, layers: Sequence[AnyLayer]) -> int:
    """Elements of a head that are rotated."""
    if loader.taped.tables == "none":
        return 0
    return next(rotary_dim(layer.mixer.attention) for layer in layers if isinstance(layer.mixer, Mixer | Latent))
