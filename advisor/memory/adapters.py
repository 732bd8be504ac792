"""What an adapter adds: LoRA's matrices, and the trained copies of whole modules."""

from collections.abc import Iterable

from advisor.memory.freezing import freezes_all
from advisor.memory.lora_targets import expert_paths, layers_wrapped, named, rank_at, stacked, ties_ends
from advisor.memory.weight_groups import Group, Shape, base_width, group_of
from advisor.models import Architecture, WeightShape
from advisor.run import Lora, Run, Zero

TOWERS = frozenset({"vision", "audio", "projector"})
PEFT = "peft/tuners/tuners_utils.py, cast_adapter_dtype@0.20.0"


def adapter_groups(
    run: Run, model: Architecture, *, towers_get_no_gradients: bool = False
) -> tuple[list[Group], list[tuple[Shape, int]]]:
    """LoRA's matrices, and the trained copies of ``lora_modules_to_save``; and the shapes of all that is trained.

    ``towers_get_no_gradients``: whether those of towers get no gradients.
    """
    lora = run.lora
    if lora is None:
        return [], []
    width = _adapter_width(run, lora)
    resting = [tensor for tensor in model.tensors if towers_get_no_gradients and tensor.kind in TOWERS]
    shapes = _adapter_shapes(run, lora, model, [tensor for tensor in model.tensors if tensor not in resting])
    trained = not freezes_all(run, model)
    groups = [group_of("adapter", width, trained, PEFT, shapes)] if shapes else []
    if rest := _adapter_shapes(run, lora, model, resting):
        groups.append(group_of("adapter of towers", width, False, PEFT, rest))
    tied = ties_ends(run, model)
    table = (model.family.embedding_modules[0],)
    saved = [one for one in model.tensors if _saves_module(lora, one) or (tied and named(table, one.module))]
    tables = [(tensor.shape, tensor.count) for tensor in saved if tensor.kind == "embedding"]
    others = [(tensor.shape, tensor.count) for tensor in saved if tensor.kind != "embedding"]
    if model.tied and not tied and "lm_head" in lora.modules_to_save:
        others += [(tensor.shape, tensor.count) for tensor in model.tensors if tensor.kind == "embedding"]
    copies = (("embedding copies", tables), ("module copies", others))
    source = "peft/utils/other.py, ModulesToSaveWrapper@0.20.0: a trained copy in the module's own width"
    groups += [group_of(name, base_width(run), trained, source, kept) for name, kept in copies if kept]
    return groups, [*shapes, *tables, *others] if trained else []


def _adapter_shapes(
    run: Run, lora: Lora, model: Architecture, tensors: Iterable[WeightShape]
) -> list[tuple[Shape, int]]:
    """The shapes of LoRA's matrices at these weights."""
    shapes: list[tuple[Shape, int]] = []
    for tensor in tensors:
        if tensor.linear and (count := targets(lora, tensor)):
            shapes += low_rank(rank_at(lora, tensor.module), tensor.shape, count)
            shapes += [((tensor.shape[0],), count)] if lora.dora else []
        elif tensor.kind == "router" and _names_parameter(lora, tensor):
            shapes += low_rank(rank_at(lora, tensor.name), tensor.shape, tensor.count)
        elif tensor.kind == "experts":
            shapes += _stack_shapes(lora, tensor) if stacked(run) else _expert_shapes(lora, model, tensor)
    return shapes


def _adapter_width(run: Run, lora: Lora) -> float:
    """PEFT keeps adapters of half-precision models in fp32; DeepSpeed's engine casts them to half."""
    if isinstance(run.sharding, Zero) or not lora.fp32:
        return float(run.compute_bytes)
    return 4.0


def low_rank(rank: int, shape: Shape, count: int) -> list[tuple[Shape, int]]:
    """A (rank x in) and B (out x rank)."""
    return [((rank, shape[-1]), count), ((shape[-2], rank), count)]


def _stack_shapes(lora: Lora, tensor: WeightShape) -> list[tuple[Shape, int]]:
    """Of stacked experts that are named as a parameter."""
    if not _names_parameter(lora, tensor):
        return []
    return low_rank(rank_at(lora, tensor.name) * tensor.shape[0], tensor.shape[-2:], tensor.count)


def _expert_shapes(lora: Lora, model: Architecture, tensor: WeightShape) -> list[tuple[Shape, int]]:
    """Of the linear layers of experts that are modules, which all have the shape of the stack that leads back."""
    return [
        shape
        for path in expert_paths(model, tensor)
        for shape in low_rank(
            rank_at(lora, path), tensor.shape[-2:], tensor.shape[0] * layers_wrapped(lora, path, tensor.count)
        )
        if shape[1]
    ]


def expert_adapter_elements(run: Run, model: Architecture) -> tuple[int, int]:
    """Elements of the adapters of stacked experts: of all layers, and of one."""
    if run.lora is None or not stacked(run):
        return 0, 0
    every = one = 0
    for tensor in model.tensors:
        if tensor.kind == "experts":
            shapes = _stack_shapes(run.lora, tensor)
            every += sum(rows * columns * count for (rows, columns), count in shapes)
            one += sum(rows * columns for (rows, columns), _ in shapes)
    return every, one


def targets(lora: Lora, tensor: WeightShape) -> int:
    """How many of these linear layers LoRA wraps; the head only where it is named."""
    if not tensor.name.endswith("weight"):
        return 0
    if tensor.kind == "head":
        found = tensor.module in lora.targets or (named(lora.targets, tensor.module) and not lora.layers)
        return tensor.count if found else 0
    return layers_wrapped(lora, tensor.module, tensor.count)


def _names_parameter(lora: Lora, tensor: WeightShape) -> bool:
    """Whether ``lora_target_parameters``, or what PEFT moves there, names this weight of experts or router."""
    return named(lora.target_parameters, tensor.name)


def _saves_module(lora: Lora, tensor: WeightShape) -> bool:
    """Whether ``lora_modules_to_save`` keeps a trained copy of the module that owns this weight."""
    return named(lora.modules_to_save, tensor.module)
