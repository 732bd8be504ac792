"""The model's own weights as they lie in memory: in which width, quantized or not, trained or frozen."""

from functools import lru_cache

from advisor.memory.adapters import TOWERS, adapter_groups
from advisor.memory.freezing import unfrozen_matcher
from advisor.memory.weight_groups import Shape, Weights, base_width, group_of
from advisor.models import Architecture, WeightShape
from advisor.record import replace
from advisor.run import Fsdp, Run, Zero

# bitsandbytes 4-bit: half a byte, one 8-bit scale per 64 elements, one fp32 per 256 of those (arXiv 2305.14314,
# section 3).
NF4_DOUBLE = 0.5 + 1 / 64 + 4 / (64 * 256)
NF4_SINGLE = 0.5 + 4 / 64
MXFP4 = 0.5 + 1 / 32  # OCP MX: one shared 8-bit exponent per 32 elements
NVFP4 = 0.5 + 1 / 16  # one 8-bit scale per 16 elements; of released mixtures the experts alone
GPTQ = 0.5 + 2.5 / 128  # 4 bits; a 16-bit scale and a 4-bit zero point per 128 elements
FP8 = 1 + 4 / (128 * 128)  # one fp32 scale per 128 x 128 block

RELEASED = {"mxfp4": MXFP4, "nvfp4": NVFP4, "fp8": FP8}
"""How checkpoints are stored that come quantized."""

LOADER = "axolotl/loaders/model.py:426-489,719-830@0.19.0"


STORED_BY = (
    "adapter",
    "quantization",
    "double_quantization",
    "quantize_moe_experts",
    "linear_experts",
    "unfrozen_parameters",
    "freeze_multimodal",
    "precision",
    "stack",
    "embeddings_fp32",
    "upcasts_unquantized",
    "fsdp_upcasts",
)
"""With the adapter and the kind of sharding, all that says how weights are stored: a test watches what is read."""


class Stored:
    """A run and its model as their weights are stored: equal to another that stores them alike."""

    def __init__(self, run: Run, model: Architecture, *, towers_get_no_gradients: bool = False) -> None:
        self.run, self.model, self.towers_get_no_gradients = run, model, towers_get_no_gradients
        lora = tuple(str(fact) for fact in vars(run.lora).values()) if run.lora is not None else None
        self.key = (
            model,
            lora,
            towers_get_no_gradients,
            type(run.sharding),
            *(getattr(run, name) for name in STORED_BY),
        )

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stored) and self.key == other.key


@lru_cache(maxsize=8)
def weights_of(run: Run, model: Architecture) -> Weights:
    """The model's own tensors, grouped by storage, and the adapter's."""
    return grouped(Stored(run, model, towers_get_no_gradients=towers_get_no_gradients(run, model)))


def towers_get_no_gradients(run: Run, model: Architecture) -> bool:
    """Whether a tower's adapters get no gradients, since rows are of text: torch makes them no states, engines do.

    torch/optim/optimizer.py: a parameter without a gradient is left out.
    """
    alone = run.sharding is None and run.world_size == 1 and run.adapter is not None
    return alone and any(one.kind in TOWERS for one in model.tensors) and not run.uses_images


@lru_cache(maxsize=32)
def grouped(stored: Stored) -> Weights:
    """The weights of runs that store them alike."""
    run, model = stored.run, stored.model
    by_storage: dict[tuple[str, float, bool], list[tuple[Shape, int]]] = {}
    trained: list[tuple[Shape, int]] = []
    for tensor in model.tensors:
        count = trained_count(run, tensor)
        for number, is_trained in ((count, True), (tensor.count - count, False)):
            if number:
                name, width = storage(run, model, tensor, is_trained)
                by_storage.setdefault((name, width, is_trained), []).append((tensor.shape, number))
        if count:
            trained.append((tensor.shape, count))
    base = (group_of(*key, LOADER, shapes) for key, shapes in by_storage.items())
    groups, adapters = adapter_groups(run, model, towers_get_no_gradients=stored.towers_get_no_gradients)
    return Weights((*base, *groups), (*trained, *adapters))


def loaded_weights(run: Run, model: Architecture, weights: Weights) -> Weights:
    """The weights as the loader leaves them: DeepSpeed's engine casts them in place, once the model is on the GPU.

    PEFT has turned what is not quantized to fp32 by then, and its adapters too (axolotl/loaders/model.py:468,
    1116-1152@0.19.0; peft/utils/other.py:197-202, tuners/tuners_utils.py, cast_adapter_dtype@0.20.0;
    deepspeed/runtime/engine.py:1459-1469@0.18.9). Stage 3 builds its shards in its own dtype.
    """
    match run.sharding:
        case Zero(stage=0 | 1 | 2):
            return weights_of(replace(run, sharding=None), model)
        case _:
            return weights


def storage(run: Run, model: Architecture, tensor: WeightShape, is_trained: bool) -> tuple[str, float]:
    """What kind of weight it is, and its bytes per element."""
    quantized = quantized_width(run, tensor)
    if quantized is not None:
        return ("quantized experts" if tensor.kind == "experts" else "quantized linear layers"), quantized
    width = float(base_width(run))
    if (
        (run.embeddings_fp32 and is_upcast(model, tensor))
        or (run.upcasts_unquantized and not recast(run, tensor))
        or (isinstance(run.sharding, Fsdp) and run.fsdp_upcasts and is_trained)
    ):
        width = 4.0
    if isinstance(run.sharding, Zero) and run.precision != "fp32":
        width = 2.0
    names = {
        "embedding": "embeddings",
        "head": "head",
        "experts": "experts",
        "vision": "vision tower",
        "audio": "audio tower",
    }
    return names.get(tensor.kind, "layers"), width


def is_upcast(model: Architecture, tensor: WeightShape) -> bool:
    """Whether axolotl turns this weight to fp32, by its name: axolotl/loaders/utils.py:306-316@0.19.0."""
    if tensor.kind == "norm":
        return "norm" in tensor.module
    if tensor.kind == "router":
        return tensor.module.endswith(".gate")
    tied = tensor.kind == "embedding" and model.tied and model.family.head_module
    return tied or any(name in tensor.module for name in model.family.embedding_modules)


def recast(run: Run, tensor: WeightShape) -> bool:
    """Whether the trainer casts it back to half precision after PEFT's upcast; only norms, embeddings and head are.

    axolotl norms by their names, in towers too (axolotl/loaders/model.py:1163-1167@0.19.0); TRL embeddings and head of
    4-bit models that are not sharded (trl/trainer/utils.py, peft_module_casting_to_bf16@0.12.2).
    """
    tables = tensor.kind in {"embedding", "head"}
    if run.stack.trainer == "trl-sft":
        return tables and run.quantization == "nf4" and run.precision == "bf16" and run.sharding is None
    return run.stack.trainer == "axolotl" and (tables or tensor.kind == "norm" or "norm" in tensor.module)


def quantized_width(run: Run, tensor: WeightShape) -> float | None:
    """Bytes per element if this tensor is quantized, else None.

    bitsandbytes replaces every ``nn.Linear`` but the head (transformers/quantizers/base.py, get_keys_to_not_convert);
    experts that transformers 5 stacks are no linear layers, and only axolotl's ``quantize_moe_experts`` reaches them.
    """
    if run.quantization is None or (not tensor.name.endswith("weight") and tensor.kind != "experts"):
        return None
    if run.quantization in RELEASED:
        inside = tensor.kind == "experts" or (tensor.linear and run.quantization == "fp8")
        return RELEASED[run.quantization] if inside else None
    # axolotl's quantizer takes stacks of matrices alone (monkeypatch/moe_quant.py:108@0.19.0): DBRX has flat ones.
    experts = tensor.kind == "experts" and len(tensor.shape) == 3
    stacked = experts and run.stack.at_least("transformers", "5.0.0") and not run.linear_experts
    linear = (tensor.linear or experts) and not _is_whole(run, tensor) and not stacked
    expert = stacked and run.quantize_moe_experts
    if not (linear or expert):
        return None
    match run.quantization:
        case "int8":
            return 1 + 4 / tensor.shape[-1]  # one fp32 scale a row
        case "nf4":
            return NF4_DOUBLE if run.double_quantization else NF4_SINGLE
        case _:
            return GPTQ


def unreached_experts(run: Run, model: Architecture) -> int:
    """Elements of stacked experts that bitsandbytes leaves whole in a quantized base, which axolotl could pack."""
    stacks = sum(tensor.elements for tensor in model.tensors if tensor.kind == "experts" and len(tensor.shape) == 3)
    is_stacked = run.stack.at_least("transformers", "5.0.0") and not run.linear_experts
    is_asked = run.quantization in {"nf4", "int8"} and not run.quantize_moe_experts
    return stacks if is_stacked and is_asked and not model.quantized else 0


def _is_whole(run: Run, tensor: WeightShape) -> bool:
    """Whether a quantizer passes a linear layer by: the head, or those alone that axolotl names."""
    named = run.model.family.whole_linears if run.model is not None and run.quantization in {"nf4", "int8"} else ()
    return tensor.module.endswith(named) if named else tensor.kind == "head"


def trained_count(run: Run, tensor: WeightShape) -> int:
    """How many of the layers that have this weight of the base model give it gradients."""
    if run.adapter is not None or (run.freeze_multimodal and tensor.kind in {"vision", "audio", "projector"}):
        return 0
    if not run.unfrozen_parameters:
        return tensor.count
    names = {tensor.name.replace("*", str(layer)) for layer in range(tensor.count)}
    matched = sum(map(unfrozen_matcher(run.unfrozen_parameters), names))
    return matched if "*" in tensor.name else tensor.count * matched
