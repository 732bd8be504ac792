# pyright: basic, reportMissingImports=false
"""A config -> the inventory of its real model, and what its layers keep under each set of facts.

Runs in a process of its own: it loads torch, and an odd model may abort it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import transformers

from advisor.models.architecture import Architecture
from advisor.models.blocks import Block
from advisor.models.family import family_of
from advisor.models.traced import Facts, Growth, LayerTrace, ModelTrace
from advisor.record import replace
from advisor.tracing.allocations import Trace, belongs, layer_forward_working, layer_saved, layer_working
from advisor.tracing.blocks import Group, block, groups, read
from advisor.tracing.inventory import tensors
from advisor.tracing.kernels import FUSED, has_kernel, stand_ins
from advisor.tracing.lengths import lengths_for
from advisor.tracing.lora import adapt
from advisor.tracing.modules import UntraceableError, built, decoder_layers, widened
from advisor.tracing.recorder import materialise
from advisor.tracing.step import Watch, as_on_cuda, asks_for_gradients, outputs, passing, recorded

PLAIN = "state spaces and linear attention are traced in plain PyTorch, which needs more than fused kernels do"
Points = dict[str, list[tuple[int, int]]]


def measured(values: Mapping[str, Any], facts: Facts, windows: tuple[int, ...]) -> Architecture:
    """The model's inventory, with a trace of its layers under ``facts``."""
    model = built(values, facts)
    found = inventory(model, values)
    kinds = groups(decoder_layers(model), model.config.get_text_config())
    lengths = lengths_for(facts.beyond, windows)
    try:
        layers, outside = runs(model, facts, lengths, kinds, skips=True)
    except UntraceableError:
        raise
    except Exception:  # some layers hand on more than a hidden state: then all of them must run
        layers, outside = runs(built(values, facts), facts, lengths, kinds, skips=False)
    blocks = tuple(replace(one, traces=(trace,)) for one, trace in zip(found.blocks, layers, strict=True))
    return replace(found, blocks=blocks, trace=ModelTrace(transformers.__version__, windows, ((facts, outside),)))


def inventory(model: Any, values: Mapping[str, Any]) -> Architecture:
    """What the model is made of."""
    config = model.config.get_text_config()
    layers = decoder_layers(model)
    found = tuple(block(layers, group, config) for group in groups(layers, config))
    return Architecture(
        name="",
        model_type=str(values["model_type"]),
        hidden_size=read(config, "hidden_size"),
        vocab_size=read(config, "vocab_size"),
        tied=ties(model),
        tensors=tensors(model),
        blocks=found,
        max_position_embeddings=read(config, "max_position_embeddings") or None,
        class_name=type(model).__name__,
        dtype=str(values.get("dtype") or values.get("torch_dtype") or "bfloat16").removeprefix("torch."),
        supports_flash_attention=bool(model._supports_flash_attn),
        extra=(PLAIN,) if _runs_plain(model, found) else (),
    )


def _runs_plain(model: Any, blocks: Sequence[Block]) -> bool:
    """Whether some layers have kernels outside of torch for which nothing stands in."""
    kinds = {one.attention.kind for one in blocks if one.attention is not None}
    states = "ssm" in kinds and not has_kernel(model, (FUSED, "mamba_selective_scan"))
    return states or ("linear" in kinds and not has_kernel(model, ("torch_chunk_gated_delta_rule",)))


def ties(model: Any) -> bool:
    """Whether head and embedding are one tensor."""
    head = model.get_output_embeddings()
    return head is not None and getattr(head, "weight", None) is model.get_input_embeddings().weight


def runs(
    model: Any, facts: Facts, lengths: Sequence[int], found: Sequence[Group], *, skips: bool
) -> tuple[list[LayerTrace], Growth]:
    """Steps at each length; with ``skips`` only one layer of each kind computes, and the others hand on."""
    layers = decoder_layers(model)
    weights: set[int] = set()
    if facts.adapter is not None:
        asks_for_gradients(model)
        adapt(model, facts.adapter)
    if facts.fp32_stream:
        widened(model)
    chosen = {group.first: layers[group.first] for group in found}
    watch = Watch(chosen)
    points: dict[int, Points] = {index: {} for index in chosen}
    outside: list[tuple[int, int]] = []

    def mark(weight: torch.Tensor) -> None:
        if watch.recorder is not None:
            watch.recorder.mark_gradient(weight)

    bits = facts.adapter is not None and not facts.adapter.casts
    family = family_of(model.config.get_text_config().model_type)
    with as_on_cuda(), stand_ins(model, quantized=bits and not (family and family.whole_linears)):
        materialise(model, weights, mark)
        if skips:
            for index, form in outputs(model, layers).items():
                if index not in chosen:
                    layers[index].forward = passing(form)
        for length in lengths:
            step = _without_head_gradient(recorded(model, watch, weights, facts, length, train=True), model)
            still = recorded(model, watch, weights, facts, length, train=False)
            for index, one in points.items():
                note(one, length, step, still, index)
            outside.append((length, _kept_outside(step, chosen, model)))
    return [_layer_trace(facts, points[group.first]) for group in found], Growth(tuple(outside))


def note(points: Points, length: int, step: Trace, still: Trace, index: int) -> None:
    """Writes down what one layer needs at one length."""
    inputs = [one.bytes for one in step.storages if one.layer_output == index - 1]
    if not inputs:
        raise UntraceableError(f"layer {index} does not run on text alone")
    entered = inputs[-1]
    for name, value in (
        ("saved", layer_saved(step, index)),
        ("working", layer_working(step, index)),
        ("forward", layer_forward_working(still, index)),
        ("entered", entered),
    ):
        points.setdefault(name, []).append((length, value))


def _layer_trace(facts: Facts, points: Points) -> LayerTrace:
    """The points of one layer as their growths."""
    return LayerTrace(facts, **{name: Growth(tuple(each)) for name, each in points.items()})


def _without_head_gradient(step: Trace, model: Any) -> Trace:
    """The step with the head's gradient marked as such: a tied weight gets it only when the embedding has its own."""
    sides = set(model.get_output_embeddings().weight.shape)
    for one in step.storages:
        one.gradient = one.gradient or (len(one.shape) == 2 and set(one.shape) == sides)
    return step


def _kept_outside(step: Trace, chosen: Mapping[int, Any], model: Any) -> int:
    """Bytes that are kept outside of layers, without those of the logits' width, which the loss counts."""
    marks = step.marks
    spans = {index: (marks[f"forward {index}"], marks[f"forward end {index}"]) for index in chosen}
    vocabulary = read(model.config.get_text_config(), "vocab_size")
    return sum(
        one.bytes
        for one in step.saved()
        if not any(belongs(one, index, *span) for index, span in spans.items())
        and (not one.shape or one.shape[-1] != vocabulary)
    )
