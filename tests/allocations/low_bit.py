# pyright: basic, reportMissingImports=false
"""torchao's optimizers, with their compiled step by the tensors that it makes."""

from typing import Any
from unittest import mock

import torch

LOW_BIT = {"adamw_torch_8bit": "AdamW8bit", "adamw_torch_4bit": "AdamW4bit", "ao_adamw_fp8": "AdamWFp8"}


def low_bit(name: str, weights: list[Any]) -> Any:
    """The optimizer as transformers makes it, with blocks of 256."""
    import torchao.optim
    from torchao.optim import subclass_4bit, subclass_8bit

    for module in (subclass_4bit, subclass_8bit):  # kept from now on: their making reads what fake tensors lack
        with torch._C._DisableTorchDispatch():
            module.get_qmap_signed()
            module.get_qmap_unsigned()
    return getattr(torchao.optim, LOW_BIT[name])(weights, block_size=256)


def compiled_steps() -> Any:
    """torchao's step by what torch.compile makes of it."""
    return mock.patch.object(torch, "compile", lambda _function, **_options: compiled)


def compiled(weight: Any, _gradient: Any, _step: Any, first: Any, second: Any, *_rest: Any) -> None:
    """The tensors of single_param_adam as torch 2.13.0 compiles it: tests/oracles/test_low_bit_step.py."""
    if not hasattr(first, "codes"):
        return
    blocks = [torch.empty_like(one.scale) for one in (first, second)]
    if not hasattr(first, "qmap"):
        del blocks
        return
    exact = [torch.empty(weight.shape) for _ in range(2)]
    if first.codes.numel() == weight.numel():
        del exact, blocks
        return
    indices = [torch.empty(weight.shape, dtype=torch.long) for _ in range(2)]
    for each in (exact, indices, blocks) * 2:
        del each[0]
