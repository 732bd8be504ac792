# pyright: basic
"""One training step of a real model on fake tensors: which storages live when, with no weights and no GPU.

The fake tensors sit on device ``cpu`` (a fake ``cuda`` aborts the process in a CPU build of torch 2.13.0),
and what CUDA does otherwise is put in its place: a dropout mask of one byte, and autocast's list of fp32
operations.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

import torch
import torch.nn.functional as functional
import transformers.masking_utils
from accelerate.utils.operations import convert_to_fp32
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AutoModelForCausalLM, PretrainedConfig

from advisor.tracing import cuda_emulation
from advisor.tracing.allocations import Trace
from advisor.tracing.cuda_emulation import CudaHabits, cuda_dropout
from advisor.tracing.kernels import stand_ins
from advisor.tracing.recorder import Recorder, materialise


@dataclass(frozen=True)
class Setting:
    """How the model is trained. ``adapter`` is PEFT's ``target_modules``, None for full fine-tuning."""

    adapter: str | tuple[str, ...] | None = None
    rank: int = 16
    dropout: float = 0.0
    dora: bool = False
    adapter_fp32: bool = True
    casts_inputs: bool = True
    """Not on bitsandbytes' linears, whose wrapper leaves that to autocast: peft/tuners/lora/bnb.py@0.20.0."""
    autocast: bool = True
    weights: torch.dtype = torch.bfloat16
    checkpointing: Literal["reentrant", "non-reentrant"] | None = None
    attention: str = "sdpa"
    math: bool = False
    """sdpa without its kernels, as for bf16 on a card before Ampere."""
    padding_mask: bool = False
    packed: bool = False
    evaluation: bool = False
    num_items: bool = True
    prepare: Callable[[torch.nn.Module], object] | None = None
    """Last changes to the model, such as another norm."""
    loss: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor] | None = None
    """The step's loss from the model and the token ids, where it is not the model's own."""
    converts_outputs: bool = False
    """accelerate's ``convert_outputs_to_fp32`` around the forward."""
    made: Any = AutoModelForCausalLM
    """The auto class that builds it."""
    task: str = "CAUSAL_LM"
    """PEFT's name of what the model is for."""


def build(config: PretrainedConfig, setting: Setting) -> torch.nn.Module:
    """The model on meta tensors, with its adapter."""
    config.use_cache = False
    with torch.device("meta"):
        model: Any = setting.made.from_config(config, attn_implementation=setting.attention, dtype=setting.weights)
        model.train(not setting.evaluation)
        if setting.checkpointing is not None:
            reentrant = setting.checkpointing == "reentrant"
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
        if setting.adapter is not None:
            model = adapted(model, setting)
        if setting.prepare is not None:
            setting.prepare(model)
    return model


def adapted(model: Any, setting: Setting) -> Any:
    """The model under PEFT's LoRA."""
    from peft import LoraConfig, get_peft_model

    if setting.checkpointing is not None:
        model.enable_input_require_grads()
    targets = list(setting.adapter) if isinstance(setting.adapter, tuple) else setting.adapter
    lora = LoraConfig(
        r=setting.rank,
        lora_dropout=setting.dropout,
        target_modules=targets,
        task_type=setting.task,
        use_dora=setting.dora,
    )
    model = get_peft_model(model, lora, autocast_adapter_dtype=setting.adapter_fp32)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data = weight.data.to(torch.float32 if setting.adapter_fp32 else setting.weights)
    for module in model.modules():
        if hasattr(module, "_cast_input_dtype") and not setting.casts_inputs:
            module._cast_input_dtype = lambda x, _dtype: x
    return model.train(not setting.evaluation)


def decoder_layers(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The decoder layers, under whatever name the family gives them."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return list(max(lists, key=lambda one: sum(w.numel() for w in one.parameters())))


def watch(layers: list[torch.nn.Module], recorder: Recorder) -> None:
    """Marks when each layer's forward and backward begin and end."""

    def before(index: int) -> Callable[..., None]:
        def hook(_module: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden = args[0] if args else kwargs.get("hidden_states", kwargs.get("hidden_state"))
            if index == 0:
                recorder.mark_output(hidden, -1)
            recorder.mark(f"forward {index}")
            if hidden.requires_grad and torch.is_grad_enabled():
                hidden.register_hook(lambda _gradient: recorder.mark(f"backward end {index}"))

        return hook

    def after(index: int) -> Callable[..., None]:
        def hook(_module: object, _args: object, output: Any) -> None:
            hidden = output[0] if isinstance(output, tuple) else output
            recorder.mark_output(hidden, index)
            recorder.mark(f"forward end {index}")
            if hidden.requires_grad and torch.is_grad_enabled():
                hidden.register_hook(lambda _gradient: recorder.mark(f"backward {index}"))

        return hook

    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(before(index), with_kwargs=True)
        layer.register_forward_hook(after(index))


@contextmanager
def as_on_cuda(setting: Setting) -> Iterator[None]:
    """Fake tensors, CUDA's habits, and no mask where transformers would make none outside tracing."""
    with ExitStack() as stack:
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(mock.patch.object(functional, "dropout", cuda_dropout))
        if not setting.packed:
            nothing = mock.patch.object(
                transformers.masking_utils, "find_packed_sequence_indices", lambda *_a, **_k: None
            )
            stack.enter_context(nothing)
        if setting.math:
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(mock.patch.object(cuda_emulation, "_needs_stand_in", lambda *_a, **_k: False))
        yield


def own_loss(setting: Setting, model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """The model's own loss as the Hugging Face trainer asks for it: over the items of the global batch.

    Under autocast accelerate's wrapper turns the outputs to fp32, as long as they live.
    """
    extra: dict[str, Any] = {}
    if setting.padding_mask:
        extra["attention_mask"] = torch.ones_like(tokens)
    if setting.num_items:
        extra["num_items_in_batch"] = torch.ones((), dtype=torch.long)
    wrapped = convert_to_fp32 if setting.converts_outputs else lambda outputs: outputs
    return wrapped(model(input_ids=tokens, labels=tokens, **extra)).loss


def trace(config: PretrainedConfig, setting: Setting, rows: int = 1, length: int = 256) -> Trace:
    """Forward and backward of one micro-step over ``rows`` x ``length`` tokens."""
    model: Any = build(config, setting)
    result = Trace()
    recorder = Recorder(result)
    with as_on_cuda(setting), stand_ins(model, quantized=not setting.casts_inputs):
        materialise(model, recorder.weights, recorder.mark_gradient)
        base = model.get_base_model() if setting.adapter is not None else model
        watch(decoder_layers(base), recorder)
        tokens = torch.zeros(rows, length, dtype=torch.long)
        step(model, tokens, setting, recorder)
    return result


def step(model: torch.nn.Module, tokens: torch.Tensor, setting: Setting, recorder: Recorder) -> None:
    """Forward and backward, recorded."""
    autocast = torch.autocast("cpu", torch.bfloat16) if setting.autocast else nullcontext()
    with recorder:
        hooks = torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda tensor: tensor)
        with hooks, CudaHabits(), torch.set_grad_enabled(not setting.evaluation):
            with autocast:
                loss = (setting.loss or (lambda m, t: own_loss(setting, m, t)))(model, tokens)
            recorder.mark("forward done")
        if not setting.evaluation:
            recorder.mark("backward")
            with CudaHabits():
                loss.backward()
        recorder.mark("done")
        del loss


def weight_casts(found: Trace) -> int:
    """Bytes of kept half-precision copies of weights."""
    return sum(storage.bytes for storage in found.storages if storage.saved and storage.casts_weight)
