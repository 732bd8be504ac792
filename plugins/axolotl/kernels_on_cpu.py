# pyright: basic, reportMissingImports=false
"""axolotl's kernels for TRL's losses, on a CPU: as much memory as there, where axolotl would take several times that.

axolotl/monkeypatch/trainer/utils.py:173-183,478-482@0.19.0: what is not on a GPU goes to a whole log-softmax.
"""

import sys
from collections.abc import Iterator
from typing import Any

import torch

KERNELS = "axolotl.monkeypatch.trainer.utils"
USED = "trl.trainer.utils"
AT_ONCE = 16
"""Tokens whose logits are computed with at once: what that takes does not show."""


class Selected(torch.autograd.Function):
    """The log-probabilities of some entries of each row; rows are kept, and get one gradient."""

    @staticmethod
    def forward(context: Any, rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Of all rows, in fp32."""
        sums = torch.empty(len(rows), dtype=torch.float32, device=rows.device)
        found = torch.empty(index.shape, dtype=torch.float32, device=rows.device)
        for part in _parts(len(rows)):
            some = rows[part].float()
            sums[part] = some.logsumexp(-1)
            found[part] = some.gather(-1, index[part]) - sums[part].unsqueeze(-1)
        context.save_for_backward(rows, index, sums)
        return found

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Less each row's probabilities, and more where it was asked for."""
        rows, index, sums = context.saved_tensors
        result = torch.empty_like(rows)
        for part in _parts(len(rows)):
            given = gradient[part].float()
            powers = (rows[part].float() - sums[part].unsqueeze(-1)).exp_()
            powers.mul_(-given.sum(-1, keepdim=True)).scatter_add_(-1, index[part], given)
            result[part] = powers.to(rows.dtype)
        return result, None


def selective_log_softmax(logits: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """axolotl's function of that name, on its kernel: rows that do not lie one after another are copied."""
    entries = index.unsqueeze(-1) if index.ndim == logits.ndim - 1 else index
    flat = logits.reshape(-1, logits.shape[-1])
    found = Selected.apply(flat, entries.reshape(-1, entries.shape[-1]))
    assert isinstance(found, torch.Tensor)
    return found.to(logits.dtype).reshape(index.shape)


def entropy_from_logits(logits: torch.Tensor, chunk_size: int = AT_ONCE) -> torch.Tensor:  # noqa: ARG001
    """axolotl's function of that name, on its kernel, which reads rows wherever they lie."""
    found = [_entropy(some.float()) for some in _pieces(logits)]
    return torch.cat(found).to(logits.dtype).reshape(logits.shape[:-1])


def _entropy(rows: torch.Tensor) -> torch.Tensor:
    logarithms = rows.log_softmax(-1)
    return -(logarithms.exp() * logarithms).sum(-1)


def _pieces(logits: torch.Tensor) -> Iterator[torch.Tensor]:
    """Some rows at a time, as views."""
    if logits.ndim > 2:
        for one in logits:
            yield from _pieces(one)
    else:
        yield from logits.split(AT_ONCE)


def _parts(count: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, count, AT_ONCE))


def stand_in() -> None:
    """Takes the place of axolotl's functions where TRL has them, before its trainers are imported."""
    kernels, used = sys.modules.get(KERNELS), sys.modules.get(USED)
    for own in (selective_log_softmax, entropy_from_logits):
        name = own.__name__
        if kernels is not None and getattr(used, name, None) is getattr(kernels, name):
            setattr(used, name, own)
