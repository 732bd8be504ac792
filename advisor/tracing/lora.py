# pyright: basic, reportMissingImports=false
"""LoRA as PEFT computes it (peft/tuners/lora/layer.py, bnb.py, Linear.forward@0.20.0), without PEFT."""

from typing import Any

import torch

from advisor.memory.adapters import targets
from advisor.memory.lora_targets import rank_at
from advisor.models.blocks import WeightShape
from advisor.models.traced import AdapterFacts
from advisor.run import Lora
from advisor.tracing.inventory import is_linear, starred


class Adapted(torch.nn.Module):
    """A linear layer and its low-rank adapter."""

    def __init__(self, base: torch.nn.Module, n_in: int, n_out: int, rank: int, facts: AdapterFacts) -> None:
        super().__init__()
        width = torch.float32 if facts.width == 4 else torch.bfloat16
        self.base = base
        self.a = torch.nn.Linear(n_in, rank, bias=False, device="meta", dtype=width)
        self.b = torch.nn.Linear(rank, n_out, bias=False, device="meta", dtype=width)
        self.casts = facts.casts
        self.dropout = torch.nn.Dropout(0.1) if facts.dropout else torch.nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's result and the scaled product of the adapter."""
        result = self.base(x)
        inner = x.to(self.a.weight.dtype) if self.casts else x
        return (result + self.b(self.a(self.dropout(inner))) * 0.5).to(result.dtype)

    def __getattr__(self, name: str) -> Any:
        """What modules read of their linears, such as ``weight``."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("base"), name)


def adapt(model: Any, facts: AdapterFacts) -> None:
    """Wraps the linear layers that the adapter targets."""
    lora = Lora(
        rank=facts.rank,
        alpha=1,
        dropout=0.1 if facts.dropout else 0.0,
        targets=facts.targets,
        targets_pattern=facts.targets_pattern,
        target_linear=facts.target_linear,
        rank_pattern=dict(facts.rank_pattern),
    )
    head = model.get_output_embeddings()
    for path, module in list(model.named_modules()):
        if not is_linear(module):
            continue
        n_in, n_out = widths(module)
        weight = WeightShape(
            starred(f"{path}.weight"), "head" if module is head else "other", (n_out, n_in), 1, linear=True
        )
        if targets(lora, weight):
            parent, _, name = path.rpartition(".")
            wrapped = Adapted(module, n_in, n_out, rank_at(lora, weight.module), facts)
            setattr(model.get_submodule(parent), name, wrapped)


def widths(module: Any) -> tuple[int, int]:
    """Input and output of a linear layer; ``Conv1D`` keeps them the other way round."""
    n_in, n_out = module.weight.shape if type(module).__name__ == "Conv1D" else reversed(module.weight.shape)
    return n_in, n_out
