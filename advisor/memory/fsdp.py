"""What FSDP holds beside its shards: gathered units, and gradients that are whole until they are reduced."""

from dataclasses import replace
from typing import Literal

from advisor.memory.activations import checkpoint_bytes
from advisor.memory.activations.lora_kernels import all_adapter_elements
from advisor.memory.gradients import accumulates_whole, gradient_terms, half_width
from advisor.memory.groups import Group, Weights
from advisor.memory.ledger import Term
from advisor.models import Architecture
from advisor.run import Run

Moment = Literal[
    "end of forward",
    "start of backward",
    "layer",
    "layer done",
    "first layer",
    "first layer done",
    "end of backward",
    "evaluation",
]
FIRST_LAYER = {"first layer", "first layer done"}
GROUP = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"
UNITS = "torch/distributed/fsdp: the root unit stays gathered, and the layer at work"
OUTPUT = f"{GROUP}:417-490,795-833@2.13.0: a gathered output is copied; forward frees it late, backward prefetches one"
REDUCED = f"{GROUP}:640-720, _flat_param.py@2.13.0: whole gradients, and the flat copy of a unit that is being reduced"
HOOKS = "torch/distributed/fsdp/_runtime_utils.py:1473-1520, torch/autograd/graph.py:638-700@2.13.0: "
PAST_HOOKS = "axolotl/kernels/lora.py:73-81@0.19.0: adapters are gathered by hand, and cut again when backward ends"
FROZEN = f"{HOOKS}the hook on a layer's input that reshards it follows the one that gathers the layer before"
HELD = f"{HOOKS}the hook that reshards a frozen layer holds the checkpoint's input and its gradient until backward ends"
ROOT_LAST = "torch/distributed/fsdp: the root unit is reduced when backward ends; the head's gradient waits for it"


def gathered_units(run: Run, model: Architecture, moment: Moment) -> tuple[Term, ...]:
    """Units that are whole at a moment: the root (embedding, final norm, head) and layers, in the compute dtype."""
    fsdp = run.fsdp
    assert fsdp is not None
    width = unit_width(run)
    if not fsdp.wraps_layers:
        text = f"{width:.3g} B x {model.parameters:,}: one unit"
        return (Term("gathered model", "overhead", round(width * model.parameters), text, UNITS),)
    half, root = half_width(run), root_elements(model)
    root_term = Term("gathered root unit", "overhead", half * root, f"{half} B x {root:,}", UNITS)
    layer = largest_layer(model)
    inside = model.parameters - root - tower_elements(model)
    stays = not fsdp.reshard_after_forward and moment not in FIRST_LAYER | {"end of backward"}
    units = layers_at(run, model, moment)
    elements = units * layer + (inside if stays else 0)
    text = f"{width:.3g} B x {units} x {layer:,}" + (f" + {width:.3g} B x {inside:,}, not resharded" if stays else "")
    source = OUTPUT if fsdp.version == 2 and units else FROZEN if units == 2 else UNITS
    layers = Term("gathered layers", "overhead", round(width * elements), text, source)
    return (root_term, *((layers,) if elements else ()), *whole_adapters(run, model))


def whole_adapters(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Adapters that axolotl's kernels gather past FSDP2's hooks: whole from their first use until backward ends."""
    elements, half = gathered_by_hand(run, model), half_width(run)
    text = f"{half} B x {elements:,}"
    return (Term("whole adapters", "overhead", half * elements, text, PAST_HOOKS),) if elements else ()


def gathered_by_hand(run: Run, model: Architecture) -> int:
    """Elements of the adapters that axolotl's kernels gather under FSDP2."""
    two = run.fsdp is not None and run.fsdp.version == 2 and run.world_size > 1
    return all_adapter_elements(run, model) if two else 0


def layers_at(run: Run, model: Architecture, moment: Moment) -> int:
    """How many layers' worth of weights are whole, beside those that are not resharded.

    FSDP2 copies a unit out of its gathered output; forward frees that with the next unit (an adapter's matrices are
    units of their own), and backward gathers the layer before. So does FSDP1, for a moment, where layers are frozen.
    """
    fsdp = run.fsdp
    assert fsdp is not None
    two = fsdp.version == 2
    outlives = two and (run.adapter is None or gathered_by_hand(run, model) > 0)
    match moment:
        case "layer done" | "first layer done" if fsdp.reshard_after_forward and gathers_ahead(run):
            return 2
        case "end of forward":
            return int(outlives)
        case "evaluation":
            return 2 if outlives else 1
        case "start of backward":
            return int(two and fsdp.reshard_after_forward)
        case "end of backward":
            return 0
        case "first layer" | "first layer done" if not fsdp.reshard_after_forward:
            return 1
        case _:
            return (2 if two else 1) if fsdp.reshard_after_forward else 0


def gathers_ahead(run: Run) -> bool:
    """Whether a frozen layer of FSDP1 is still whole when the one before it is gathered."""
    first = run.fsdp is not None and run.fsdp.version == 1
    return first and run.adapter is not None and not checkpoints_units(run)


def checkpoints_units(run: Run) -> bool:
    """Whether units lie inside reentrant checkpoints.

    From transformers 4.53 the checkpoint lies inside the layer (modeling_layers.py, GradientCheckpointingLayer).
    """
    return run.activation_checkpointing and run.reentrant and not run.stack.at_least("transformers", "4.53.0")


def held_inputs(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Inputs of the layers that backward has passed, and their gradients, where FSDP1 holds them until its end."""
    fsdp = run.fsdp
    first = fsdp is not None and fsdp.version == 1 and run.world_size > 1
    if not first or run.adapter is None or not checkpoints_units(run) or run.activation_offloading is not None:
        return ()
    bytes_ = sum(block.count * checkpoint_bytes(run, block) for block in model.blocks)
    return (Term("layer inputs and their gradients", "activations", 2 * bytes_, f"2 x {bytes_:,} B", HELD),)


def root_copied(run: Run, model: Architecture, *, forward: bool) -> tuple[Term, ...]:
    """FSDP2's root unit and the output it is copied from: as forward starts, with the first layer; as backward does."""
    fsdp = run.fsdp
    if fsdp is None or run.world_size == 1 or fsdp.version == 1 or not (forward or fsdp.reshard_after_forward):
        return ()
    half, root = half_width(run), root_elements(model) if fsdp.wraps_layers else model.parameters
    layer = largest_layer(model) if forward and fsdp.wraps_layers else 0
    bytes_ = 2 * half * root + round(2 * unit_width(run) * layer)
    text = f"2 x {half} B x {root:,}" + (f" + 2 x {unit_width(run):.3g} B x {layer:,}, a layer" if layer else "")
    return (Term("root unit and its gathered output", "overhead", bytes_, text, OUTPUT),)


def layer_gradients(run: Run, model: Architecture, weights: Weights, *, done: bool = False) -> tuple[Term, ...]:
    """Gradients of a layer before they are reduced: one matrix while it is at work, all once it is done.

    FSDP1 reduces a flat copy of them; FSDP2 keeps that of the layer behind until it makes this one's.
    """
    if run.fsdp is None or run.world_size == 1:
        return ()
    two, layer = run.fsdp.version == 2, trained_layer(run, model, weights)
    inner = (group.largest for group in weights.trained if not is_table(group) and group.name != "adapter")
    accumulated = two and accumulates_whole(run)
    new = layer if done and not accumulated else max(inner, default=0)
    flat = layer if (done or two) and not accumulated else 0
    half = half_width(run)
    text = f"{half} B x ({new:,} new + {flat:,} in a flat copy)"
    return (Term("layer's whole gradients", "gradients", half * (new + flat), text, REDUCED),)


def waiting_head(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The head's gradient while layers are at work; where FSDP2 accumulates whole ones, it joins them at once."""
    joins = accumulates_whole(run) and not model.tied
    if run.fsdp is None or run.world_size == 1 or (joins and run.fsdp.version == 2):
        return ()
    half, elements = half_width(run), max(trained_tables(weights), default=0)
    return (Term("head gradient", "gradients", half * elements, f"{half} B x {elements:,}", ROOT_LAST),)


def gradients_of_layers(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """Gradients when all layers' are reduced, and the root unit's are not yet, nor those of adapters in kernels."""
    (found,) = gradient_terms(run, weights)
    if accumulates_whole(run) or run.world_size == 1 or not found.bytes:
        return (found,)
    whole, half = gathered_by_hand(run, model), half_width(run)
    width = max((group.width for group in weights.trained if group.name == "adapter"), default=0)
    late = sum(group.bytes for group in weights.trained if is_table(group)) + round(width * whole)
    bytes_ = late // run.shard_size
    reduced = replace(found, bytes=found.bytes - bytes_, formula=f"{found.formula}, less {bytes_:,} B that come later")
    if not whole:
        return (reduced,)
    return (reduced, Term("adapters' whole gradients", "gradients", half * whole, f"{half} B x {whole:,}", PAST_HOOKS))


def root_gradients(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """When backward ends: the root unit's gradients, of a tied table both and their sum; the unit last reduced."""
    if run.fsdp is None or run.world_size == 1:
        return ()
    two, tables = run.fsdp.version == 2, trained_tables(weights)
    if model.tied:
        elements = 3 * sum(tables)
    elif two:
        elements = max(tables, default=0) if accumulates_whole(run) else sum(tables)
    else:
        elements = 2 * sum(tables)
    half, flat = half_width(run), trained_layer(run, model, weights) if two else 0
    root = Term("root unit's whole gradients", "gradients", half * elements, f"{half} B x {elements:,}", ROOT_LAST)
    return (root, Term("layer's flat gradients", "gradients", half * flat, f"{half} B x {flat:,}", REDUCED))


def trained_tables(weights: Weights) -> list[int]:
    """Elements of trained embeddings and heads."""
    return [group.elements for group in weights.trained if is_table(group)]


def is_table(group: Group) -> bool:
    """Whether it is in the root unit: an embedding, or a head."""
    return group.embedding or group.name == "head"


def trained_layer(run: Run, model: Architecture, weights: Weights) -> int:
    """Elements of the largest layer that get gradients; an adapter's are reduced one by one."""
    assert run.fsdp is not None
    adapters = sum(group.elements for group in weights.trained if group.name == "adapter")
    trained = weights.trained_elements - adapters - sum(trained_tables(weights))
    return min(largest_layer(model), trained) if run.fsdp.wraps_layers else trained


def unit_width(run: Run) -> float:
    """Bytes per element of a gathered layer: quantized weights travel as they are stored."""
    half = 4.0 if run.precision == "fp32" else 2.0
    return {"nf4": 0.52, "int8": 1.0, "mxfp4": 0.54, "nvfp4": 0.57, "fp8": 1.0}.get(run.quantization or "", half)


def largest_layer(model: Architecture) -> int:
    """Elements of the largest decoder layer."""
    return max((block.parameters for block in model.blocks), default=0)


def root_elements(model: Architecture) -> int:
    """Elements outside decoder layers and towers."""
    return model.parameters - sum(block.parameters * block.count for block in model.blocks) - tower_elements(model)


def tower_elements(model: Architecture) -> int:
    """Elements of vision and audio towers and their projectors."""
    return sum(model.by_kind.get(kind, 0) for kind in ("vision", "audio", "projector"))
