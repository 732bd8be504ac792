# pyright: basic, reportMissingImports=false
"""Tapes of real training steps on fake tensors: every allocation and free of two steps, as the Trainer makes them.

The model, PEFT's adapters, torch's checkpointing, loss and optimizers are the real ones. Kernels that only a GPU has
stand in by their tensors: FlashAttention's and bitsandbytes'.
"""

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as functional
import transformers
import transformers.masking_utils
from accelerate.utils.operations import ConvertOutputsToFp32
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.nemotron import modeling_nemotron
from transformers.models.olmo3 import modeling_olmo3

from advisor.models.family import family_of
from advisor.tracing.cuda_emulation import CudaHabits
from advisor.tracing.kernels import stand_ins
from advisor.tracing.modules import FLASH, class_for
from advisor.tracing.step import as_on_cuda

from .delta_nets import delta_nets
from .kernels import SCORES, EightBit, grouped, layer_norm, pack_experts, scored, under_mask
from .liger import patch_layers, patched
from .low_bit import LOW_BIT, compiled_steps, low_bit
from .preferences import odds, preferred, unpaired
from .replicas import accumulating, is_real, processes, replica
from .seeing import images_of, seeing

Events = list[tuple[int, int]]
"""(number of the allocation, bytes), and (its number, 0) where it is freed."""


class Recorder(TorchDispatchMode):
    """Writes down each storage that an operation makes, and its death."""

    def __init__(self, *, replicated: bool = False) -> None:
        super().__init__()
        self.replicated = replicated
        self.events: Events = []
        self.made_by: dict[int, str] = {}
        self.known: dict[int, int] = {}
        self.on = True

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.replicated and operation is torch.ops.aten._local_scalar_dense.default:
            return 1  # DDP asks whether any process has used a weight
        result = operation(*args, **(kwargs or {}))
        if self.replicated and is_real(args):
            return result
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor, str(operation))
        return result

    def see(self, tensor: torch.Tensor, name: str) -> None:
        """Writes a storage down, if it is new."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        on_host = name == "aten.lift_fresh.default" and tensor.ndim == 0  # numbers, such as AdamW's count of steps
        if key in self.known or not storage.nbytes() or not self.on or on_host:
            return
        number = self.known[key] = len(self.made_by) + 1
        self.made_by[number] = name
        self.events.append((number, storage.nbytes()))
        weakref.finalize(storage, self.bury, key)

    def bury(self, key: int) -> None:
        """Writes a death down."""
        self.events.append((self.known.pop(key), 0))


class FlashKernel(torch.autograd.Function):
    """flash_attn 2 (csrc/flash_attn/flash_api.cpp): output and statistics; backward's sums in fp32, for all heads."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any, sequences: int = 0) -> Any:
        output = torch.empty_like(query)
        rows, length, heads, _ = query.shape
        context.sequences = sequences
        statistics = torch.empty(rows, heads, length, dtype=torch.float32)
        context.save_for_backward(query, key, value, output, statistics)
        return output

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        query, key, value, _output, _statistics = context.saved_tensors
        rows, length, heads, width = query.shape
        padded = length + 128 * context.sequences if context.sequences else -(-length // 128) * 128
        gradients = [torch.empty_like(one) for one in (query, key, value)]
        sums = torch.empty(rows, heads, padded, dtype=torch.float32)
        exact = torch.empty(rows, heads, padded, -(-width // 32) * 32, dtype=torch.float32)
        if key.shape[2] != heads:
            expanded = [torch.empty(rows, length, heads, width, dtype=key.dtype) for _ in range(2)]
            del expanded
        del sums, exact
        return *gradients, None


def flash(
    _module: Any, query: Any, key: Any, value: Any, _mask: Any = None, cu_seq_lens_q: Any = None, **_options: Any
) -> Any:
    """integrations/flash_attention.py@5.16.1: rows first, in half precision."""
    query, key, value = (one.transpose(1, 2) for one in (query, key, value))
    if query.dtype == torch.float32:
        query, key, value = (one.to(torch.bfloat16) for one in (query, key, value))
    return FlashKernel.apply(query, key, value, 0 if cu_seq_lens_q is None else len(cu_seq_lens_q) - 1), None


def kernel(query: Any, key: Any, value: Any, attn_mask: Any = None, **_options: Any) -> Any:
    """torch's own kernels: for rows without a mask, and with one."""
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (one.to(torch.bfloat16) for one in (query, key, value))
    if attn_mask is not None:
        return under_mask(query, key, value, attn_mask)
    return FlashKernel.apply(*(one.transpose(1, 2) for one in (query, key, value))).transpose(1, 2)


class FourBitProduct(torch.autograd.Function):
    """bitsandbytes/autograd/_functions.py, MatMul4Bit@0.50.2: the weight in half precision, each way."""

    @staticmethod
    def forward(context: Any, x: Any, layer: Any, bias: Any) -> Any:
        context.layer = layer
        return functional.linear(x, layer.dequantized(), bias)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        return torch.matmul(gradient, context.layer.dequantized()), None, None


class FourBit(torch.nn.Module):
    """bitsandbytes/nn/modules.py, Linear4bit@0.50.2, with nested statistics."""

    def __init__(self, base: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = base.in_features, base.out_features
        count = base.weight.numel()
        self.weight = torch.nn.Parameter(torch.empty(count // 2, 1, dtype=torch.uint8), requires_grad=False)
        self.register_buffer("absmax", torch.empty(count // 64, dtype=torch.uint8))
        self.register_buffer("nested", torch.empty(-(-count // 64 // 256)))
        self.bias = base.bias

    def dequantized(self) -> Any:
        """The weight in half precision; the statistics are fp32 for that moment."""
        statistics = torch.empty(self.absmax.numel(), dtype=torch.float32)
        weight = torch.empty(self.out_features, self.in_features, dtype=torch.bfloat16)
        del statistics
        return weight

    def forward(self, x: Any) -> Any:
        kept = x.dtype
        x = x.to(torch.bfloat16)
        bias = None if self.bias is None else self.bias.to(torch.bfloat16)
        return FourBitProduct.apply(x, self, bias).to(kept)


class QuantizedAdapter(torch.nn.Module):
    """peft/tuners/lora/bnb.py, Linear4bit.forward and Linear8bitLt.forward@0.20.0."""

    def __init__(self, base: torch.nn.Module, rank: int, dropout: float) -> None:
        super().__init__()
        self.base_layer = base
        self.on = True
        self.lora_A = torch.nn.Linear(base.in_features, rank, bias=False, dtype=torch.float32)
        self.lora_B = torch.nn.Linear(rank, base.out_features, bias=False, dtype=torch.float32)
        self.dropout = torch.nn.Dropout(dropout) if dropout else torch.nn.Identity()

    def forward(self, x: Any) -> Any:
        result = self.base_layer(x)
        if not self.on:
            return result
        if isinstance(self.base_layer, FourBit):
            result = result.clone()
        if not torch.is_autocast_enabled("cpu"):
            x = x.to(self.lora_A.weight.dtype)
        output = self.lora_B(self.lora_A(self.dropout(x))) * 2.0
        return result + (output if torch.is_autocast_enabled("cpu") else output.to(result.dtype))


def in_fp32(function: Any) -> Any:
    """As CUDA's autocast calls it, in recomputed layers too."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return function(*args, **kwargs)
        wide = {name: CudaHabits.single(one) for name, one in kwargs.items()}
        return function(*(CudaHabits.single(one) for one in args), **wide)  # the caller still has its own

    return called


def summed(function: Any) -> Any:
    """As CUDA's autocast calls it: sums and softmax of half precision are fp32.

    ATen/autocast_mode.h, fp32_set_opt_dtype@2.13.0.
    """

    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        half = x.dtype == torch.bfloat16 and torch.is_autocast_enabled("cpu") and kwargs.get("dtype") is None
        return function(x, *args, **{**kwargs, "dtype": torch.float32} if half else kwargs)

    return called


def whole(model: Any) -> set[int]:
    """Linears that stay as they are: the head, or those that axolotl names (axolotl/loaders/model.py:819-838@0.19.0)."""
    family = family_of(model.config.model_type)
    names = family.whole_linears if family is not None else ()
    named = {id(module) for name, module in model.named_modules() if names and name.endswith(names)}
    return named or {id(model.get_output_embeddings())}


def named(targets: tuple[str, ...] | str, path: str) -> bool:
    """Whether a linear gets an adapter: by its own name, or by a pattern for all of its path."""
    if isinstance(targets, str):
        return re.fullmatch(targets, path) is not None
    return path.rpartition(".")[2] in targets


def quantized(
    model: Any, kind: type[Any], rank: int, dropout: float, targets: tuple[str, ...] | str, *, packed: bool = False
) -> Any:
    """The model with quantized linears but for the head, and adapters on some."""
    kept = whole(model)
    with torch.device("meta"):
        for path, module in list(model.named_modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, torch.nn.Linear) and id(child) not in kept:
                    base, adapts = kind(child), named(targets, f"{path}.{name}")
                    module._modules[name] = QuantizedAdapter(base, rank, dropout) if adapts else base
        if packed:
            pack_experts(model, kind)
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name)
    return model


def upcast(model: Any) -> None:
    """What is not quantized in fp32, but what axolotl casts back: axolotl/loaders/model.py:1110-1175@0.19.0."""
    for name, module in model.named_modules():
        if "norm" not in name and not name.endswith(("embed_tokens", "lm_head")):
            for weight in module.parameters(recurse=False):
                if weight.dtype == torch.bfloat16:
                    weight.data = weight.data.float()


def with_trained_copies(model: Any, names: tuple[str, ...]) -> Any:
    """The model with PEFT's trained copies of embedding and head."""
    from peft.utils.other import ModulesToSaveWrapper

    for name in names:
        owner = model.model if name == "embed_tokens" else model
        wrapper = ModulesToSaveWrapper(getattr(owner, name), "default")
        setattr(owner, name, wrapper)
        for weight_name, weight in wrapper.named_parameters():
            weight.requires_grad_("modules_to_save" in weight_name)
    return model


def adapted(model: Any, setting: dict[str, Any]) -> Any:
    """The model under PEFT's LoRA, or with what stands in for bitsandbytes."""
    from peft import LoraConfig, get_peft_model

    rank, dropout, targets = setting["rank"], setting["dropout"], setting["targets"]
    model.enable_input_require_grads()
    if setting["method"] != "lora":
        kind = {"qlora": FourBit, "int8": EightBit}[setting["method"]]
        model = quantized(model, kind, rank, dropout, targets, packed=setting["packed_experts"])
        if setting["upcast"]:
            upcast(model)
        return with_trained_copies(model, setting["saved"])
    saved = list(setting["saved"]) or None
    modules = targets if isinstance(targets, str) else list(targets)
    lora = LoraConfig(
        r=rank, lora_dropout=dropout, target_modules=modules, modules_to_save=saved, task_type="CAUSAL_LM"
    )
    model = get_peft_model(model, lora)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data = weight.data.to(torch.float32)
    return model


def in_single_precision(model: Any) -> None:
    """Buffers that transformers loads in fp32 whatever the model's precision."""
    for module in model.modules():
        for name in model._keep_in_fp32_modules_strict or ():
            if (buffer := module._buffers.get(name)) is not None:
                module._buffers[name] = buffer.float()


def built(setting: dict[str, Any]) -> Any:
    """The model of a setting on meta tensors."""
    config = transformers.AutoConfig.for_model(**setting["config"])
    config.use_cache = config.get_text_config().use_cache = False
    make = class_for(config)._from_config
    if setting["classifier"]:
        kind, config.num_labels = CLASSIFIERS[setting["classifier"]]
        make = kind.from_config
    attention = setting["attention"]
    with torch.device("meta"):
        first = "sdpa" if attention == "flash" else attention
        model: Any = make(config, attn_implementation=first, dtype=torch.bfloat16)
    model.tie_weights()
    model.train()
    in_single_precision(model)
    patch_layers(model, setting["liger"])
    if setting["loss"] in SCORES:
        scored(model, setting["loss"])
    if attention == "flash":
        model.config._attn_implementation = FLASH
    if setting["checkpointing"]:
        reentrant = setting["checkpointing"] == "reentrant"
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    if setting["method"] != "full":
        model = adapted(model, setting)
        if setting["kernels"]:
            from tests.oracles.axolotl_kernels import fused

            fused(model)
        if setting["unfrozen"]:
            model.requires_grad_(False)
    elif setting["fp32_embeddings"]:
        for name, module in model.named_modules():
            if name.endswith(("embed_tokens", "lm_head")) or "norm" in name.rpartition(".")[2]:
                for weight in module.parameters(recurse=False):
                    weight.data = weight.data.float()
    return model


def in_half_precision(_device: str, *args: Any) -> Any:
    """Arguments as CUDA's autocast has them, in recomputed layers too."""
    return torch.amp.autocast_mode._cast(args, "cpu", torch.bfloat16) if torch.is_autocast_enabled("cpu") else args


def in_order(kinds: Any) -> list[str]:
    """Kinds of layers, always in the same order."""
    return sorted(frozenset(kinds))


@contextmanager
def on_cuda() -> Iterator[None]:
    """As a model is traced, and the attention kernels of a GPU by all of their tensors."""
    with (
        as_on_cuda(),
        mock.patch.dict(ALL_ATTENTION_FUNCTIONS._global_mapping, {FLASH: flash}),
        mock.patch.object(functional, "scaled_dot_product_attention", kernel),
        mock.patch.object(functional, "grouped_mm", grouped),
        mock.patch.object(functional, "layer_norm", in_fp32(layer_norm)),
        mock.patch.object(torch, "pow", in_fp32(torch.pow)),
        mock.patch.object(torch, "square", in_fp32(torch.square)),
        mock.patch.object(torch.Tensor, "sum", summed(torch.Tensor.sum)),
        mock.patch.object(torch.Tensor, "softmax", summed(torch.Tensor.softmax)),
        mock.patch.object(torch, "expm1", in_fp32(torch.expm1)),
        mock.patch.object(functional, "softplus", in_fp32(functional.softplus)),
        mock.patch.object(modeling_gemma3, "set", in_order, create=True),
        mock.patch.object(modeling_olmo3, "set", in_order, create=True),
        mock.patch.object(modeling_nemotron, "_cast_if_autocast_enabled", in_half_precision),
    ):
        yield


def materialise(model: Any) -> None:
    """Meta weights and buffers as fake ones, in the order of the modules."""
    made: dict[int, Any] = {}
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None:
                if id(weight) not in made:
                    fake = torch.empty(weight.shape, dtype=weight.dtype)
                    made[id(weight)] = torch.nn.Parameter(fake, requires_grad=weight.requires_grad)
                module._parameters[name] = made[id(weight)]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype)


def optimizer_of(name: str, weights: list[Any]) -> Any:
    """The optimizer by its name in transformers."""
    if name in LOW_BIT:
        return low_bit(name, weights)
    return torch.optim.AdamW(weights, foreach=name == "adamw_torch", fused=name == "adamw_torch_fused")


def record(setting: dict[str, Any], steps: int = 2) -> tuple[Recorder, list[tuple[str, int]]]:
    """The tape of a setting, and where each phase ends."""
    model = built(setting)
    recorder, marks = Recorder(replicated=bool(setting["replicas"])), []
    quantized = setting["method"] in {"qlora", "int8"}
    with (
        on_cuda(),
        stand_ins(model, quantized=quantized),
        delta_nets(model, setting["packed"]),
        patched(setting),
        seeing(setting),
        processes(setting),
        recorder,
    ):
        materialise(model)
        weights = [one for one in model.parameters() if one.requires_grad]
        optimizer = optimizer_of(setting["optimizer"], weights or [{"params": []}])
        forward = model.forward
        compared = reference_of(setting, model) if setting["preferences"] in {"dpo", "kto"} else None

        def cast_forward(*args: Any, **kwargs: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16):
                return forward(*args, **kwargs)

        run = ConvertOutputsToFp32(cast_forward)
        marks.append(("load", len(recorder.events)))
        if setting["replicas"]:
            run = replica(model, run, setting["replicas"])
        for _ in range(steps):
            batches, items = batch_samples(setting)
            for number, batch in enumerate(batches, 1):
                with accumulating(run, is_last=number == len(batches)):
                    loss = one_micro_step(setting, run, batch, items, compared)
                    marks.append(("forward", len(recorder.events)))
                    with CudaHabits():
                        loss.backward()
                loss = loss.detach()
                marks.append(("backward", len(recorder.events)))
            if weights:
                torch.nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
            with compiled_steps():
                optimizer.step()
            model.zero_grad()
            marks.append(("optimizer step", len(recorder.events)))
        recorder.on = False
        events = list(recorder.events)
    recorder.events = events
    return recorder, marks


def reference_of(setting: dict[str, Any], model: Any) -> Any:
    """What calls the reference, and what makes it one: its adapters turned off, or a copy of its own."""
    policy = model if setting["method"] != "full" else built({**setting, "checkpointing": None})
    if policy is not model:
        materialise(policy)
    forward = policy.forward

    def cast_forward(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return forward(*args, **kwargs)

    return (
        setting["padded"],
        ConvertOutputsToFp32(cast_forward),
        partial(bare, model, setting["checkpointing"] == "reentrant"),
    )


@contextmanager
def bare(model: Any, reentrant: bool) -> Iterator[None]:
    """The model without adapters and checkpoints: trl/models/utils.py, disable_gradient_checkpointing@1.9.0."""
    wrapped = [one for one in model.modules() if isinstance(one, QuantizedAdapter)]
    inside = model.get_base_model() if hasattr(model, "get_base_model") else model
    checkpoints = inside.is_gradient_checkpointing
    for one in wrapped:
        one.on = False
    if checkpoints:
        inside.gradient_checkpointing_disable()
    with model.disable_adapter() if hasattr(model, "disable_adapter") else nullcontext():
        yield
    for one in wrapped:
        one.on = True
    if checkpoints:
        inside.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})


def batch_samples(setting: dict[str, Any]) -> tuple[list[Any], Any]:
    """The rows of an optimizer step, which the Trainer takes at once, and how many tokens are scored."""
    names = ("input_ids", "attention_mask") if setting["padded"] else ("input_ids",)
    names = COLUMNS.get(setting["preferences"], names)
    if setting["images"]:
        names = ("input_ids", "attention_mask", "labels")
    shape = (setting["rows"] // (2 if setting["preferences"] in {"orpo", "simpo"} else 1), setting["length"])
    batches: list[Any] = [
        {name: torch.zeros(shape, dtype=torch.long) for name in names} | images_of(setting)
        for _ in range(setting["micro_steps"])
    ]
    return batches, torch.zeros((), dtype=torch.long)


IN_ROWS = ("input_ids", "attention_mask", "completion_mask")
IN_PAIRS = ("input_ids", "attention_mask", "labels")
APART = tuple(f"{which}_{name}" for which in ("chosen", "rejected") for name in IN_PAIRS)
COLUMNS = {
    "dpo": IN_ROWS,
    "orpo": APART,
    "simpo": APART,
    "kto": (*IN_ROWS, *(f"KL_{name}" for name in IN_ROWS)),
}
"""What TRL's collators call the tensors of a batch."""
CLASSIFIERS = {
    "sequence": (transformers.AutoModelForSequenceClassification, 1),
    "token": (transformers.AutoModelForTokenClassification, 2),
}


def rewarded(run: Any, batch: Any) -> Any:
    """TRL's loss of pairs, without its metrics: trl/trainer/reward_trainer.py, compute_loss@1.9.0."""
    chosen, rejected = torch.chunk(run(**batch).logits.squeeze(-1), chunks=2)
    return -functional.logsigmoid(chosen - rejected).mean()


def one_micro_step(setting: dict[str, Any], run: Any, batch: Any, items: Any, compared: Any = None) -> Any:
    """The loss as the Trainer asks for it: the outputs live until it is returned."""
    with CudaHabits():
        if setting["preferences"] in {"orpo", "simpo"}:
            alone = setting["preferences"] == "orpo"
            return odds(run, batch, setting["padded"], alone, alone or setting["chosen"])
        if compared is not None:
            return (unpaired if setting["preferences"] == "kto" else preferred)(run, batch, *compared)
        if setting["classifier"] == "sequence":
            return rewarded(run, batch)
        labels = batch["labels"] if setting["images"] else batch["input_ids"]
        outputs = run(**{**batch, "labels": labels}, num_items_in_batch=items)
        return outputs["loss"]
