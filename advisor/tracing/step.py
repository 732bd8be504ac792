# pyright: basic, reportMissingImports=false
"""One training step of a real model on fake tensors: what its layers keep at one length."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as functional
import transformers.masking_utils
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from advisor.models.traced import Facts
from advisor.tracing.allocations import Trace
from advisor.tracing.cuda_emulation import CudaHabits, cuda_dropout
from advisor.tracing.modules import FLASH, flash
from advisor.tracing.recorder import Recorder


@contextmanager
def as_on_cuda() -> Iterator[None]:
    """Fake tensors, CUDA's habits, and no mask where transformers would make none outside tracing."""
    with ExitStack() as stack:
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(mock.patch.object(functional, "dropout", cuda_dropout))
        nothing: Callable[..., None] = lambda *_a, **_k: None  # noqa: E731
        stack.enter_context(mock.patch.object(transformers.masking_utils, "find_packed_sequence_indices", nothing))
        stack.enter_context(mock.patch.dict(ALL_ATTENTION_FUNCTIONS._global_mapping, {FLASH: flash}))
        yield


def outputs(model: Any, layers: Any) -> dict[int, Any]:
    """What each layer returns in place of its hidden state, found by one short forward: see ``passing``."""
    forms: dict[int, Any] = {}

    def hook(index: int) -> Callable[..., None]:
        def remember(_module: object, _args: object, output: Any) -> None:
            forms[index] = len(output) if isinstance(output, tuple) else 0

        return remember

    handles = [layer.register_forward_hook(hook(index)) for index, layer in enumerate(layers)]
    with torch.no_grad():
        model(input_ids=torch.zeros(1, 64, dtype=torch.long))
    for handle in handles:
        handle.remove()
    return forms


def passing(form: int) -> Callable[..., Any]:
    """A forward that hands on its input, in the form in which the layer returns its output."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        hidden = args[0] if args else kwargs["hidden_states"]
        return (hidden, *[None] * (form - 1)) if form else hidden

    return forward


class Entry(torch.autograd.Function):
    """A copy that needs a gradient whether or not the original does; no leaf, which autograd would keep alive."""

    @staticmethod
    def forward(_context: Any, hidden: torch.Tensor, _leaf: torch.Tensor) -> torch.Tensor:
        """The copy."""
        return hidden.clone()

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> Any:
        """The gradient, handed on."""
        return gradient, None


def asks_for_gradients(model: Any) -> None:
    """Makes the embedding's output need a gradient, as axolotl does under adapters: loaders/adapter.py:427-428@0.19.0.

    Not by a leaf, which would be there in every moment of every layer.
    """
    model.get_input_embeddings().register_forward_hook(
        lambda _module, _args, output: Entry.apply(output, torch.zeros((), requires_grad=True))
    )


class Watch:
    """Hooks on the traced layers: each gets an input of its own, and its begin and end are marked."""

    def __init__(self, chosen: dict[int, Any]) -> None:
        self.recorder: Recorder | None = None
        for index, layer in chosen.items():
            layer.register_forward_pre_hook(self.before(index), with_kwargs=True)
            layer.register_forward_hook(self.after(index))

    def before(self, index: int) -> Callable[..., Any]:
        """A copy of the input, as if the layer before had made it, which needs a gradient in training."""

        def hook(_module: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            recorder = self.recorder
            if recorder is None:
                return None
            hidden = Entry.apply(args[0] if args else kwargs["hidden_states"], torch.zeros((), requires_grad=True))
            if torch.is_grad_enabled():
                hidden.register_hook(lambda _gradient: recorder.mark(f"backward end {index}"))
            recorder.mark_output(hidden, index - 1)
            recorder.mark(f"forward {index}")
            return ((hidden, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": hidden})

        return hook

    def after(self, index: int) -> Callable[..., None]:
        """Marks the end of a layer, and the begin of its backward."""

        def hook(_module: object, _args: object, output: Any) -> None:
            recorder = self.recorder
            if recorder is None:
                return
            hidden = output[0] if isinstance(output, tuple) else output
            recorder.mark_output(hidden, index)
            recorder.mark(f"forward end {index}")
            if hidden.requires_grad and torch.is_grad_enabled():
                hidden.register_hook(lambda _gradient: recorder.mark(f"backward {index}"))

        return hook


def recorded(model: Any, watch: Watch, weights: set[int], facts: Facts, length: int, *, train: bool) -> Trace:
    """Forward and backward, or a forward without gradients, over one row of ``length`` tokens."""
    result = Trace()
    model.train(train)
    recorder = watch.recorder = Recorder(result)
    recorder.weights |= weights
    tokens = torch.zeros(1, length, dtype=torch.long)
    mask = {"attention_mask": torch.ones_like(tokens)} if facts.padded else {}
    autocast = torch.autocast("cpu", torch.bfloat16) if facts.autocast else nullcontext()
    with recorder:
        hooks = torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda tensor: tensor)
        with hooks, CudaHabits(), torch.set_grad_enabled(train):
            with autocast:
                loss = model(input_ids=tokens, **mask).logits.sum()
            recorder.mark("forward done")
        if train:
            with CudaHabits():
                loss.backward()
        recorder.mark("done")
        del loss
    for weight in model.parameters():
        weight.grad = None
    watch.recorder = None
    return result
