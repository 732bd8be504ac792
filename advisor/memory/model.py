"""What lies on the GPU from start to end: weights, a reference model, library workspaces; and the load before it."""

from advisor.memory.activations.experts import cached_elements, checkpoints, expert_width
from advisor.memory.activations.looped import loops
from advisor.memory.activations.lora_kernels import adapter_elements, all_adapter_elements
from advisor.memory.adapters import expert_adapter_elements
from advisor.memory.deepspeed import embedding_elements, largest_module
from advisor.memory.frozen_casts import Moment, frozen_casts
from advisor.memory.ledger import Term
from advisor.memory.weight_groups import Weights, base_width
from advisor.memory.weights import LOADER, is_upcast, loaded_weights
from advisor.memory.workspaces import CUBLAS, THREADS, workspace_bytes
from advisor.models import Architecture
from advisor.run import Fsdp, Run, Zero
from advisor.run.axolotl.released import loads_through_quantizer

REFERENCE = "axolotl/train.py:127-165@0.19.0: a second copy of the model, loaded the same way"
TRL_REFERENCE = "trl/trainer/grpo_trainer.py:962-971, utils.py, create_model_from_path@1.9.0: fp32 unless told else"
QUANTIZED_LOAD = "transformers/modeling_utils.py@5.16.1: quantized weights are loaded whole on every rank, then sharded"
ZERO_INIT = (
    "deepspeed/runtime/zero/partition_parameters.py, Init._set_dtype@0.18.9: fp32 unless bf16 or fp16 is literally true"
)
WITHOUT_INIT = (
    "transformers/modeling_utils.py:3799-3813@5.16.1: no zero.Init where a quantizer loads; "
    "deepspeed/runtime/engine.py:1468-1469@0.18.9: the engine then moves the whole module to the GPU"
)
WHOLE = (
    "axolotl/loaders/model.py:582-590,1096-1097: moved whole unless cpu_ram_efficient_loading or told not to; "
    "monkeypatch/accelerate/fsdp2.py, fsdp2_prepare_model, original_sd@0.19.0"
)
UPCAST = "axolotl/loaders/model.py:436-489@0.19.0: embeddings, head and norms pass through fp32"
WHOLE_INT8 = "bitsandbytes/nn/modules.py, Linear8bitLt@0.49.1: its state keeps the matrix, which ZeRO-3 does not track"
NEVER_FREED = "torch/nn/utils/parametrize.py, cached@2.13.0: no hook empties the cache where a forward ends early"
DEQUANTIZE = "bitsandbytes/autograd/_functions.py, MatMul4Bit: one weight at a time is dequantized"
FUSED_COPIES = (
    "axolotl/kernels/lora.py:454-468,968-982,1682-1688@0.19.0: each function keeps its adapters in half precision; "
    "peft/tuners/lora/layer.py, ParamWrapper.get_delta_weight@0.20.0; aten/src/ATen/autocast_mode.cpp, cached_cast"
)
AUTOCAST = "torch autocast keeps half-precision copies of fp32 weights that need gradients"


def weight_divisor(run: Run) -> int:
    """Ranks that the weights themselves are divided over, once tensor parallelism has cut them."""
    match run.sharding:
        case Fsdp() | Zero(stage=3):
            return run.shard_size
        case _:
            return 1


NVL_BYTES = 256 << 20
NVL_BUFFER = "axolotl/integrations/expert_parallel/args.py:28, buffer.py:52-57@0.19.0: as it is asked for; not measured"


def _weights_on_host(run: Run) -> bool:
    """Whether the weights live on the host and visit the GPU."""
    match run.sharding:
        case Fsdp(offload_params=True) | Zero(offload_params="cpu" | "nvme"):
            return True
        case _:
            return False


def weight_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The weights of one rank, and what computing with them keeps for good."""
    return (*stored_terms(run, weights), *_unpacked_experts(run, model))


def stored_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """One rank's share of the weights, by how they are stored."""
    if _weights_on_host(run):
        return ()
    n = weight_divisor(run)
    terms: list[Term] = []
    for group in weights.groups:
        over = n * (run.expert_parallel_size if "experts" in group.name else 1)
        text = f"{group.width:.4g} B x {group.elements:,}" + (f" / {over}" if over > 1 else "")
        terms.append(Term(group.name, "weights", group.bytes // over, text, group.source))
        if run.quantization == "int8" and run.zero_stage == 3 and group.quantized and over > 1:
            terms.append(Term("8-bit weights, whole", "weights", group.bytes, f"{group.bytes:,} B", WHOLE_INT8))
    return tuple(terms)


def autocast_terms(run: Run, model: Architecture, weights: Weights, when: Moment = "forward") -> tuple[Term, ...]:
    """bf16 copies of fp32 weights that enter a matrix product, trained and frozen.

    Autocast drops its own when forward ends, and the graph keeps those that it saved, until their layer's backward has
    used them: of checkpointed layers none, so that when the loss's backward begins there is the head's alone, and in a
    layer's backward that layer's.
    """
    if not run.autocast or isinstance(run.sharding, Fsdp):
        return ()
    multiplied = [g for g in weights.trained if g.width == 4 and (model.tied or not g.embedding)]
    fused, kept = _copied_elements(run, model, when)
    # `unfrozen_parameters` may leave adapters frozen: those are among the fused ones alone.
    elements = max(0, sum(group.matrix_elements for group in multiplied) - fused)
    outside = sum(group.matrix_elements for group in multiplied if group.embedding or group.name == "head")
    inside, alone = max(0, elements - outside), run.activation_checkpointing or when == "first layer"
    match when:
        case "loss" if alone:
            elements = outside
        case "layer" | "first layer":
            elements = -(-inside // model.layers) if alone else inside
        case _:
            pass
    copies = Term("autocast copies", "overhead", 2 * elements, f"2 B x {elements:,} trained fp32 elements", AUTOCAST)
    held = (copies, *frozen_casts(run, model, weights, when))
    if not kept:
        return held
    return (*held, Term("adapters' copies", "overhead", 2 * kept, f"2 B x {kept:,} fp32 elements", FUSED_COPIES))


def _copied_elements(run: Run, model: Architecture, when: Moment = "forward") -> tuple[int, int]:
    """Elements of fp32 adapters that no cache of autocast's holds, and how many of the copies are there at once.

    axolotl's kernels copy theirs themselves; PEFT takes views of those of stacked experts, and autocast's cache is for
    leaves. A layer keeps its own for its backward; of checkpointed layers there is one at work.
    """
    if run.lora is None or isinstance(run.sharding, Zero) or not run.lora.fp32:
        return (0, 0)
    experts, one = expert_adapter_elements(run, model)
    every = all_adapter_elements(run, model) + experts
    layer = max(adapter_elements(run, block) for block in model.blocks) + one
    return every, layer if checkpoints(run) or when == "first layer" else every


def dequantized_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The one weight that is in half precision while a quantized layer computes.

    What a layer unpacks of its experts counts with what the layer keeps.
    """
    if run.quantization is None:
        return ()
    sizes = [tensor.numel for tensor in model.tensors if tensor.linear and tensor.kind != "head"]
    if loops(run):
        sizes += [b.mlp.width * (b.mlp.latent or b.hidden) for b in model.blocks if b.mlp and b.mlp.experts]
    largest = max(sizes, default=0)
    return (Term("dequantized weight", "overhead", 2 * largest, f"2 B x {largest:,}", DEQUANTIZE),)


def _unpacked_experts(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Experts that stay in half precision once they were used."""
    cached, width = cached_elements(run, model), expert_width(run, run.compute_bytes)
    if run.quantization is None or not cached:
        return ()
    text = f"{width} B x {cached:,} elements of all experts"
    return (Term("dequantized experts, never freed", "overhead", width * cached, text, NEVER_FREED),)


def reference_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The frozen reference model of preference training."""
    if not run.reference_model or _weights_on_host(run):
        return ()
    n = weight_divisor(run)
    trls_own = run.rollouts is not None and not isinstance(run.sharding, Zero)
    width, source = (4, TRL_REFERENCE) if trls_own else (base_width(run), REFERENCE)
    bytes_, text = width * model.parameters // n, f"{width} B x {model.parameters:,} / {n}"
    wide = sum(tensor.elements for tensor in model.tensors if is_upcast(model, tensor))
    if run.embeddings_fp32 and width == base_width(run) and run.sharding is None:
        bytes_, text = bytes_ + (4 - width) * wide, f"{text} + {4 - width} B x {wide:,} of tables and norms in fp32"
    return (Term("reference model", "weights", bytes_, text, source),)


def workspace_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """cuBLAS workspaces, which torch's allocator counts, and the rotary tables that each layer of old models kept."""
    each = workspace_bytes(run)
    workspaces = Term("cuBLAS workspaces", "overhead", THREADS * each, f"{THREADS} x {each:,} B", CUBLAS)
    return (workspaces, *_rotary_terms(run, model), *_dispatch_terms(run))


def _dispatch_terms(run: Run) -> tuple[Term, ...]:
    """The buffer through which GPUs of one node send tokens to experts, outside torch's allocator."""
    given = run.config.get("expert_parallel_num_nvl_bytes")
    bytes_ = given if isinstance(given, int) else NVL_BYTES
    if run.expert_parallel_size == 1:
        return ()
    return (Term("DeepEP's buffer", "overhead", bytes_, f"{bytes_:,} B, outside torch", NVL_BUFFER),)


def _rotary_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Cos and sin of every position, a layer each: transformers before 4.41, by exact match of published runs."""
    if run.stack.at_least("transformers", "4.41.0") or not model.max_position_embeddings:
        return ()
    heads = [(block.count, block.attention.head_dim) for block in model.blocks if block.attention is not None]
    elements = sum(count * width for count, width in heads) * model.max_position_embeddings
    text = f"4 B x {elements:,} (positions x head width x layers)"
    return (Term("rotary tables", "overhead", 4 * elements, text, "transformers 4.40 LlamaRotaryEmbedding"),)


def too_large_whole(run: Run) -> bool:
    """Whether a checkpoint that a quantizer turns to bf16 is larger than one GPU, which has it whole first."""
    if run.model is None or run.hardware is None or not loads_through_quantizer(run):
        return False
    return base_width(run) * run.model.parameters > run.hardware.usable


def load_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The most that is on the GPU while the model is loaded and made ready."""
    weights = loaded_weights(run, model, weights)
    if run.quantization is not None and not _sharded_load(run):
        text = f"{weights.frozen_bytes:,} B on every rank"
        return (
            Term("quantized model", "weights", weights.frozen_bytes, text, QUANTIZED_LOAD),
            *_upcast_terms(run, model),
        )
    match run.sharding:
        case Zero(stage=3) if loads_through_quantizer(run):
            width = base_width(run)
            text = f"{width} B x {model.parameters:,}"
            return (Term("whole weights", "weights", width * model.parameters, text, WITHOUT_INIT),)
        case Zero(stage=3, loads_fp32=loads_fp32):
            return _built_terms(run, model, 4 if loads_fp32 else 2)
        case Fsdp() as fsdp if _moves_whole(run, fsdp):
            return _whole_terms(run, fsdp, model, weights)
        case Fsdp():
            module = _largest_unit(model)
            unit = Term("unit being sharded", "overhead", 2 * module, f"2 B x {module:,}", LOADER)
            return (*stored_terms(run, weights), unit)
        case _:
            whole = Term("weights", "weights", weights.bytes, f"{weights.bytes:,} B", LOADER)
            return (whole, *_upcast_terms(run, model, adapter=weights.trained_bytes), *_second_model(run, model))


def _second_model(run: Run, model: Architecture) -> tuple[Term, ...]:
    """What axolotl loads again for GRPO without an adapter, and lets go once the trainer is made without it."""
    if run.rollouts is None or run.adapter is not None:
        return ()
    width = base_width(run)
    return (Term("second model", "weights", width * model.parameters, f"{width} B x {model.parameters:,}", REFERENCE),)


def _built_terms(run: Run, model: Architecture, width: int) -> tuple[Term, ...]:
    """The model while ``zero.Init`` builds it, a module at a time, in ``width`` bytes an element."""
    n = weight_divisor(run)
    shard = 0 if _weights_on_host(run) else width * model.parameters // n
    module = max(embedding_elements(model), largest_module(model))
    return (
        Term("shards as built", "weights", shard, f"{width} B x {model.parameters:,} / {n}", ZERO_INIT),
        Term("module being partitioned", "overhead", width * module, f"{width} B x {module:,}", ZERO_INIT),
    )


def _moves_whole(run: Run, fsdp: Fsdp) -> bool:
    """Whether axolotl puts the whole model on each GPU for FSDP to cut, unless told to load it efficiently."""
    cuts = run.world_size > 1 and run.quantization is None and run.tensor_parallel_size == 1
    stays = fsdp.cpu_ram_efficient_loading or run.config.get("experimental_skip_move_to_device") is True
    return cuts and run.stack.trainer == "axolotl" and not stays


def _whole_terms(run: Run, fsdp: Fsdp, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The whole model while it is cut: FSDP2's preparation holds on to it until all shards are made."""
    width = base_width(run)
    added = sum(group.bytes for group in weights.trained) if run.adapter is not None else 0
    text = f"{width} B x {model.parameters:,}" + (f" + {added:,} B of adapters" if added else "")
    whole = Term("whole weights", "weights", width * model.parameters + added, text, WHOLE)
    if fsdp.version == 2:
        return (whole, *stored_terms(run, weights))
    unit = _largest_unit(model)
    return (whole, Term("unit being sharded", "overhead", width * unit, f"{width} B x {unit:,}", LOADER))


def _largest_unit(model: Architecture) -> int:
    """Elements of the largest unit that FSDP cuts: a decoder layer, or the root's table."""
    return max(embedding_elements(model), max((block.parameters for block in model.blocks), default=0))


def _sharded_load(run: Run) -> bool:
    """Whether a quantized base reaches the GPU in pieces.

    FSDP1 asks for ``qlora_sharded_model_loading``; FSDP2's efficient loading quantizes on one process's host
    (axolotl/loaders/model.py:995-1004@0.19.0).
    """
    match run.sharding:
        case Fsdp(version=2, cpu_ram_efficient_loading=True) if run.tensor_parallel_size == 1:
            return True
        case Fsdp(loads_quantized_in_pieces=in_pieces):
            return in_pieces
        case _:
            return False


def _upcast_terms(run: Run, model: Architecture, *, adapter: int = 0) -> tuple[Term, ...]:
    """fp32 copies of embeddings and head that exist while axolotl casts them, and what the last was made of.

    An adapter of so many bytes, which is counted elsewhere, is made only when they have gone.
    """
    if isinstance(run.sharding, Fsdp) or run.stack.trainer != "axolotl" or run.precision == "fp32":
        return ()
    last = max(model.by_kind.get("embedding", 0), model.by_kind.get("head", 0))
    elements = last if run.embeddings_fp32 else model.by_kind.get("embedding", 0) + model.by_kind.get("head", 0) + last
    later = adapter if run.adapter is not None else 0
    more = max(0, 2 * elements - later)
    text = f"2 B more x {elements:,}" + (f", before {later:,} B of adapters" if later else "")
    return (Term("embeddings in fp32, for a moment", "overhead", more, text, UPCAST),)
