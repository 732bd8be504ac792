# pyright: basic
"""Traces steps under axolotl's own activation offloading, and prints what lies where as JSON.

Runs where TRL is installed (axolotl_venv.py). The CPU stands for the card: what operations make is recorded as the
card's, what TRL makes for the host is counted apart, and streams do nothing.
"""

import json
import os
import sys
import weakref
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import transformers.masking_utils
from transformers import Trainer

from advisor.tracing.allocations import Trace
from advisor.tracing.cuda_emulation import CudaHabits
from advisor.tracing.recorder import Recorder

from .axolotl_kernels import DictDefault, loaded_alone
from .families import FAMILIES
from .offloading_cases import CASES, LAYERS, TOKENS, Case
from .trace import Setting, adapted, decoder_layers, own_loss, watch
from .without_imports import function

mixins = loaded_alone("axolotl.core.trainers.mixins", "activation_checkpointing")
CARD = property(lambda _tensor: torch.device("cuda"))


def no(*_arguments: object) -> bool:
    """Stands for what is not asked."""
    return False


asked = {"torch": torch, "os": os, "is_deepspeed_zero3_enabled": no, "get_linear_embedding_layers": no}
apply_checkpointing = function("loaders/model.py", "_apply_activation_checkpointing")
configure_embeddings = function("loaders/model.py", "_configure_embedding_dtypes", **asked)
configure_trainer = function("core/builders/base.py", "_configure_gradient_checkpointing")


class CardRecorder(Recorder):
    """Records what lies on the card, and how much on the host."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.packing = False
        self.on_host: dict[int, int] = {}
        self.most_on_host = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not (self.packing and (kwargs or {}).get("device") == torch.device("cpu")):
            return super().__torch_dispatch__(operation, types, args, kwargs)
        made = operation(*args, **kwargs)
        storage = made.untyped_storage()
        self.on_host[storage._cdata] = storage.nbytes()
        self.most_on_host = max(sum(self.on_host.values()), self.most_on_host)
        weakref.finalize(storage, self.on_host.pop, storage._cdata)
        return made

    def see(self, tensor: torch.Tensor, operation: str, casts_weight: bool) -> None:
        """Leaves out what lies on the host."""
        if tensor.untyped_storage()._cdata not in self.on_host:
            super().see(tensor, operation, casts_weight)

    def taking(self, context: Any) -> None:
        """Puts the CPU in the card's place while a context's hooks run."""
        pack, unpack = context.pack_hook, context.unpack_hook
        context.use_pin_memory = False

        def packed(tensor: torch.Tensor) -> Any:
            self.keep(tensor)
            self.packing = True
            with mock.patch.object(torch.Tensor, "device", CARD):
                kept = pack(tensor)
            self.packing = False
            return kept

        def unpacked(kept: Any) -> Any:
            with mock.patch.object(torch.Tensor, "to", lambda tensor, *_a, **_k: tensor.clone()):
                return unpack(kept)

        context.pack_hook, context.unpack_hook = packed, unpacked


def loaded(cfg: Any, setting: Setting) -> Any:
    """The model as axolotl's loader leaves it, with its adapter."""
    config = FAMILIES["llama"](LAYERS)
    config.use_cache = False
    model = setting.made.from_config(config, attn_implementation="sdpa", dtype=setting.weights)
    loader = mock.MagicMock(cfg=cfg, model=model, is_fsdp_enabled=False)
    with mock.patch.dict(sys.modules, {"axolotl.core.trainers.mixins.activation_checkpointing": mixins}):
        apply_checkpointing(loader)
    configure_embeddings(loader)
    model.train()
    return adapted(model, setting) if setting.adapter is not None else model


def as_on_card() -> ExitStack:
    """Streams that do nothing, and the CPU as the accelerator."""
    stack = ExitStack()
    for name in ("default_stream", "current_stream", "Stream", "stream"):
        stack.enter_context(mock.patch.object(torch.cuda, name, mock.MagicMock()))
    stack.enter_context(mock.patch.object(torch.accelerator, "current_accelerator", lambda *_a: torch.device("cpu")))
    stack.enter_context(mock.patch.object(torch.Tensor, "record_stream", lambda *_a: None))
    unpacked = mock.patch.object(transformers.masking_utils, "find_packed_sequence_indices", lambda *_a, **_k: None)
    stack.enter_context(unpacked)
    return stack


def traced(case: Case) -> tuple[Trace, int]:
    """One micro-step in the context that axolotl's trainer makes, and the most bytes on the host."""
    setting, result, arguments = case.setting, Trace(), {}
    cfg = DictDefault({"gradient_checkpointing": True, "model_config_type": "llama", **case.keys})
    configure_trainer(SimpleNamespace(cfg=cfg), arguments)
    assert not arguments["gradient_checkpointing"]
    recorder, model = CardRecorder(result), loaded(cfg, setting)
    recorder.weights |= {one.untyped_storage()._cdata for one in (*model.parameters(), *model.buffers())}
    for weight in model.parameters():
        if weight.requires_grad:
            weight.register_post_accumulate_grad_hook(recorder.mark_gradient)
    watch(decoder_layers(model.get_base_model() if setting.adapter is not None else model), recorder)
    tokens = torch.zeros(1, TOKENS, dtype=torch.long)

    def made(self: Any, **facts: Any) -> None:
        vars(self).update(facts)

    def step(_self: Any) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=setting.autocast), CudaHabits():
            loss = own_loss(setting, model, tokens)
        recorder.mark("forward done")
        with CudaHabits():
            loss.backward()
        recorder.mark("done")

    with as_on_card(), mock.patch.object(Trainer, "__init__", made), mock.patch.object(Trainer, "training_step", step):
        offloading = SimpleNamespace(activation_offloading=arguments["activation_offloading"])
        trainer = mixins.ActivationOffloadingMixin(args=offloading, model=model)
        recorder.taking(trainer.activation_offload_context)
        with recorder:
            trainer.training_step()
    return result, recorder.most_on_host


def sums(case: Case) -> dict[str, int]:
    """Bytes on the card at the end of forward, and in the backward of a layer in the middle; and on the host."""
    trace, host = traced(case)
    index = LAYERS // 2
    start, end = trace.marks[f"backward end {index + 1}"], trace.marks[f"backward end {index}"]
    ahead = trace.live(trace.marks[f"forward end {LAYERS - 2}"])
    return {"forward": ahead, "backward": trace.peak(start, end), "between": trace.live(end), "host": host}


if __name__ == "__main__":
    print(json.dumps({name: sums(case) for name, case in CASES.items()}))
