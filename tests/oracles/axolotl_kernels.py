# pyright: basic
"""axolotl's fused LoRA kernels as a trace can run them: without Triton, bitsandbytes and a GPU.

Triton's kernels are known to the trace by the shapes that axolotl registers for them; what bitsandbytes would do for
quantized weights is not asked.
"""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch._dynamo

from .no_triton import without_triton


def blank(name: str) -> ModuleType:
    """A module in which every name exists."""
    made = ModuleType(name)
    made.__getattr__ = lambda attribute: mock.MagicMock(name=attribute)  # type: ignore[method-assign]
    return made


@contextmanager
def blanks(*names: str) -> Iterator[None]:
    """Modules that are not installed, or would import half of axolotl, for the imports inside of the block."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update((name, blank(name)) for name in absent)
    yield
    for name in absent:
        del sys.modules[name]


def loaded_alone(package: str, name: str) -> ModuleType:
    """A module of a package that itself would import half of axolotl."""
    folder = importlib.util.find_spec(package.rpartition(".")[0]).submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location(
        f"{package}.{name}", Path(folder, package.rpartition(".")[2], f"{name}.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOT_ASKED = ("bitsandbytes", "bitsandbytes.functional", "axolotl.utils.callbacks", "axolotl.utils.callbacks.models")
AUTOCAST = {name: partial(getattr(torch.amp, name), device_type="cpu") for name in ("custom_fwd", "custom_bwd")}
ON_CPU = {name: lambda made=made, **_: made() for name, made in AUTOCAST.items()}
with blanks(*NOT_ASKED), without_triton(), mock.patch.multiple(torch.amp, **ON_CPU):
    from axolotl.kernels import lora
    from axolotl.monkeypatch import lora_kernels
    from axolotl.utils.dict import DictDefault

lora_kernels.get_causal_lm_model_cls_prefix = loaded_alone(
    "axolotl.utils.callbacks", "models"
).get_causal_lm_model_cls_prefix
__all__ = ["fused", "lora", "lora_kernels", "patches"]
ALL = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")


def patches(model_type: str) -> bool:
    """Whether axolotl can patch the attention of models of a type, as it would be asked before one is loaded."""
    config = mock.MagicMock(model_type=model_type)
    with mock.patch.object(lora_kernels.AutoConfig, "from_pretrained", lambda _name: config):
        attention = class_asked()
        if attention is None:
            return False
        plain = attention.forward
        try:
            lora_kernels.patch_self_attn_lora(DictDefault(base_model="asked"))
        except AssertionError:
            return False
        finally:
            attention.forward = plain
            if "_original_forward" in vars(attention):
                del attention._original_forward
    return True


def class_asked() -> Any:
    """The class that axolotl takes for a model's attention; None if it stops."""
    try:
        return lora_kernels.get_attention_cls_from_config(DictDefault(base_model="asked"))
    except ValueError:
        return None


def fused(model: torch.nn.Module) -> None:
    """The model with all three kernels, as axolotl patches them in."""
    cfg = DictDefault({**dict.fromkeys(ALL, True), "base_model": "traced"})
    *_, attention = (type(module) for name, module in model.named_modules() if name.endswith("self_attn"))
    plain = attention.forward
    with mock.patch.object(lora_kernels, "get_attention_cls_from_config", lambda _cfg: attention):
        lora_kernels.patch_self_attn_lora(cfg)
    patched = attention.forward
    attention.forward = plain
    del attention._original_forward
    lora_kernels.apply_lora_kernel_patches(model, cfg)
    for module in model.modules():
        if isinstance(module, attention):
            module.forward = patched.__get__(module)
