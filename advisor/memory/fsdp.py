"""What FSDP holds in addition to its shards: gathered units, and gradients that are whole until they are reduced."""

from typing import Literal

from advisor.memory.activations import checkpoint_bytes
from advisor.memory.activations.lora_kernels import all_adapter_elements
from advisor.memory.gradients import accumulates_whole, cuts_units, gradient_terms
from advisor.memory.ledger import Term
from advisor.memory.weight_groups import Group, Weights
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Fsdp, Run

Moment = Literal[
    "end of forward",  # the loss is at work
    "start of backward",  # the head is at work
    "layer",  # the last layer's backward, while all activations are there
    "layer done",  # its gradients are whole, and not yet reduced
    "first layer",  # the same two of the layer that backward comes to last
    "first layer done",
    "end of backward",  # the root unit's gradients are whole, and not yet reduced
    "evaluation",  # a layer's forward without gradients
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
    if not isinstance(run.sharding, Fsdp):
        return ()
    fsdp, width = run.sharding, _unit_width(run)
    if not fsdp.wraps_layers:
        text = f"{width:.3g} B x {model.parameters:,}: one unit"
        return (Term("gathered model", "overhead", round(width * model.parameters), text, UNITS),)
    computed, root = run.compute_bytes, _root_elements(model)
    root_term = Term("gathered root unit", "overhead", computed * root, f"{computed} B x {root:,}", UNITS)
    layer = _largest_layer(model)
    inside = model.parameters - root - _tower_elements(model)
    # Without resharding every layer stays whole from its forward until its backward.
    stays = not fsdp.reshard_after_forward and moment not in FIRST_LAYER | {"end of backward"}
    units = _layers_at(run, model, moment)
    elements = units * layer + (inside if stays else 0)
    text = f"{width:.3g} B x {units} x {layer:,}" + (f" + {width:.3g} B x {inside:,}, not resharded" if stays else "")
    source = OUTPUT if fsdp.version == 2 and units else FROZEN if units == 2 else UNITS
    layers = Term("gathered layers", "overhead", round(width * elements), text, source)
    return (root_term, *((layers,) if elements else ()), *_whole_adapters(run, model))


def _whole_adapters(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Adapters that axolotl's kernels gather past FSDP2's hooks: whole from their first use until backward ends."""
    elements, width = _gathered_by_hand(run, model), run.compute_bytes
    text = f"{width} B x {elements:,}"
    return (Term("whole adapters", "overhead", width * elements, text, PAST_HOOKS),) if elements else ()


def _gathered_by_hand(run: Run, model: Architecture) -> int:
    """Elements of the adapters that axolotl's kernels gather under FSDP2."""
    match run.sharding:
        case Fsdp(version=2) if run.world_size > 1:
            return all_adapter_elements(run, model)
        case _:
            return 0


def _layers_at(run: Run, model: Architecture, moment: Moment) -> int:
    """How many layers' worth of weights are whole, without those that are not resharded.

    FSDP2 copies a unit out of its gathered output; forward frees that with the next unit (an adapter's matrices are
    units of their own), and backward gathers the layer before. So does FSDP1, for a moment, where layers are frozen.
    """
    if not isinstance(run.sharding, Fsdp):
        return 0
    # A process alone has no gathered output to copy from, and gathers nothing ahead.
    two, reshards = run.sharding.version == 2 and run.world_size > 1, run.sharding.reshard_after_forward
    outlives = two and (run.adapter is None or _gathered_by_hand(run, model) > 0)
    match moment:
        case "end of backward":
            return 0
        case "end of forward":
            return 1 if outlives else 0  # the last layer's gathered output
        case "evaluation":
            return 2 if outlives else 1  # the layer at work, and the output that it was copied from
        case "start of backward":
            return 1 if two and reshards else 0  # the last layer, gathered while the head is at work
        case "first layer" | "first layer done" if not reshards:
            return 1  # backward has freed all others
        case _ if not reshards:
            return 0  # all layers are whole, and counted as such
        case "layer done" | "first layer done" if _gathers_ahead(run):
            return 2
        case _:
            return 2 if two else 1  # the layer at work; FSDP2 has gathered the one before it as well


def _gathers_ahead(run: Run) -> bool:
    """Whether a frozen layer of FSDP1 is still whole when the one before it is gathered."""
    match run.sharding:
        case Fsdp(version=1):
            return run.adapter is not None and not _checkpoints_units(run)
        case _:
            return False


def _checkpoints_units(run: Run) -> bool:
    """Whether units lie inside reentrant checkpoints.

    From transformers 4.53 the checkpoint lies inside the layer (modeling_layers.py, GradientCheckpointingLayer).
    """
    return run.activation_checkpointing and run.reentrant and not run.stack.at_least("transformers", "4.53.0")


def held_inputs(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Inputs of the layers that backward has passed, and their gradients, where FSDP1 holds them until its end."""
    match run.sharding:
        case Fsdp(version=1) if run.world_size > 1 and run.adapter is not None and _checkpoints_units(run):
            if run.activation_offloading is not None:
                return ()
            bytes_ = sum(block.count * checkpoint_bytes(run, block) for block in model.blocks)
            return (Term("layer inputs and their gradients", "activations", 2 * bytes_, f"2 x {bytes_:,} B", HELD),)
        case _:
            return ()


def root_copied(run: Run, model: Architecture, *, forward: bool) -> tuple[Term, ...]:
    """FSDP2's root unit and the output it is copied from: as forward starts, with the first layer; as backward does."""
    match run.sharding:
        case Fsdp(version=2) as fsdp if run.world_size > 1 and (forward or fsdp.reshard_after_forward):
            root = _root_elements(model) if fsdp.wraps_layers else model.parameters
            layer = _largest_layer(model) if forward and fsdp.wraps_layers else 0
        case _:
            return ()
    width, layer_width = run.compute_bytes, _unit_width(run)
    # Each twice: the gathered output, and the parameters that are copied out of it.
    bytes_ = 2 * width * root + round(2 * layer_width * layer)
    text = f"2 x {width} B x {root:,}" + (f" + 2 x {layer_width:.3g} B x {layer:,}, a layer" if layer else "")
    return (Term("root unit and its gathered output", "overhead", bytes_, text, OUTPUT),)


def layer_gradients(run: Run, model: Architecture, weights: Weights, *, done: bool = False) -> tuple[Term, ...]:
    """Gradients of a layer before they are reduced: one matrix while it is at work, all once it is done.

    FSDP1 reduces a flat copy of them; FSDP2 keeps that of the layer behind until it makes this one's.
    """
    if not isinstance(run.sharding, Fsdp) or not cuts_units(run):
        return ()
    two, layer = run.sharding.version == 2, _trained_layer(run.sharding, model, weights)
    inner = (group.largest for group in weights.trained if not _is_table(group) and group.name != "adapter")
    accumulated = two and accumulates_whole(run)  # FSDP2 adds each gradient at once to those kept, and copies none
    new = layer if done and not accumulated else max(inner, default=0)
    flat = layer if (done or two) and not accumulated else 0
    width = run.compute_bytes
    text = f"{width} B x ({new:,} new + {flat:,} in a flat copy)"
    return (Term("layer's whole gradients", "gradients", width * (new + flat), text, REDUCED),)


def waiting_head(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The head's gradient while layers are at work; where FSDP2 accumulates whole ones, it joins them at once."""
    if not isinstance(run.sharding, Fsdp) or not cuts_units(run):
        return ()
    if run.sharding.version == 2 and accumulates_whole(run) and not model.tied:
        return ()
    width, elements = run.compute_bytes, max(_trained_tables(weights), default=0)
    return (Term("head gradient", "gradients", width * elements, f"{width} B x {elements:,}", ROOT_LAST),)


def gradients_of_layers(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """Gradients once every layer's are reduced: those of the root unit and of adapters in kernels are still whole."""
    (found,) = gradient_terms(run, weights)
    if accumulates_whole(run) or not cuts_units(run) or not found.bytes:
        return (found,)
    whole, computed = _gathered_by_hand(run, model), run.compute_bytes
    stored = max((group.width for group in weights.trained if group.name == "adapter"), default=0)
    late = sum(group.bytes for group in weights.trained if _is_table(group)) + round(stored * whole)
    bytes_ = late // run.shard_size
    reduced = replace(found, bytes=found.bytes - bytes_, formula=f"{found.formula}, less {bytes_:,} B that come later")
    if not whole:
        return (reduced,)
    text = f"{computed} B x {whole:,}"
    return (reduced, Term("adapters' whole gradients", "gradients", computed * whole, text, PAST_HOOKS))


def root_gradients(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """When backward ends: the root unit's gradients, of a tied table both and their sum; the unit last reduced."""
    if not isinstance(run.sharding, Fsdp) or not cuts_units(run):
        return ()
    two, tables, width = run.sharding.version == 2, _trained_tables(weights), run.compute_bytes
    if model.tied:
        elements = 3 * sum(tables)  # the head's, the embedding's, and their sum
    elif not two:
        elements = 2 * sum(tables)  # each table's, and the flat copy that is reduced
    elif accumulates_whole(run):
        elements = max(tables, default=0)  # the embedding's; the head's has joined those kept
    else:
        elements = sum(tables)
    flat = _trained_layer(run.sharding, model, weights) if two else 0  # FSDP2 keeps the first layer's until the root's
    root = Term("root unit's whole gradients", "gradients", width * elements, f"{width} B x {elements:,}", ROOT_LAST)
    return (root, Term("layer's flat gradients", "gradients", width * flat, f"{width} B x {flat:,}", REDUCED))


def _trained_tables(weights: Weights) -> list[int]:
    """Elements of trained embeddings and heads."""
    return [group.elements for group in weights.trained if _is_table(group)]


def _is_table(group: Group) -> bool:
    """Whether it is in the root unit: an embedding, or a head."""
    return group.embedding or group.name == "head"


def _trained_layer(fsdp: Fsdp, model: Architecture, weights: Weights) -> int:
    """Elements of the largest layer that get gradients; an adapter's are reduced one by one."""
    adapters = sum(group.elements for group in weights.trained if group.name == "adapter")
    trained = weights.trained_elements - adapters - sum(_trained_tables(weights))
    return min(_largest_layer(model), trained) if fsdp.wraps_layers else trained


def _unit_width(run: Run) -> float:
    """Bytes per element of a gathered layer: quantized weights travel as they are stored."""
    stored = {"nf4": 0.52, "int8": 1.0, "mxfp4": 0.54, "nvfp4": 0.57, "fp8": 1.0}
    return stored.get(run.quantization or "", run.compute_bytes)


def _largest_layer(model: Architecture) -> int:
    """Elements of the largest decoder layer."""
    return max((block.parameters for block in model.blocks), default=0)


def _root_elements(model: Architecture) -> int:
    """Elements outside decoder layers and towers."""
    return model.parameters - sum(block.parameters * block.count for block in model.blocks) - _tower_elements(model)


def _tower_elements(model: Architecture) -> int:
    """Elements of vision and audio towers and their projectors."""
    return sum(model.by_kind.get(kind, 0) for kind in ("vision", "audio", "projector"))
