# pyright: basic
"""The loss of axolotl's diffusion plugin: its own methods on logits of every token, all of them masked."""

import ast
import importlib.util
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Optional

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("axolotl")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from advisor.memory.loss import Logits, diffusion  # noqa: E402
from advisor.run import Run  # noqa: E402
from advisor.run.stack import Stack  # noqa: E402

pytestmark = pytest.mark.oracle

VOCABULARY, TOKENS = 4096, 64
SIZE = VOCABULARY * TOKENS
WANTED = {
    "utils.py": {"create_bidirectional_attention_mask", "shift_logits_to_input_positions"},
    "trainer.py": {"_forward_process", "_compute_diffusion_loss", "compute_loss"},
}


def methods() -> dict[str, Any]:
    """Functions of modules whose other imports are not installed."""
    spec = importlib.util.find_spec("axolotl")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "integrations" / "diffusion"
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
    names |= {"Any": Any, "Literal": Literal, "Optional": Optional}
    for file, wanted in WANTED.items():
        tree = ast.parse((folder / file).read_text(encoding="utf-8"))
        body = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in wanted]
        exec(compile(ast.Module(body, []), file, "exec"), names)
    return names


class Live(TorchDispatchMode):
    """Bytes per logit of the storages that are alive and as large as logits, after each operation."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.seen: list[float] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().nbytes() >= SIZE:
                storage = tensor.untyped_storage()
                if storage._cdata not in self.sizes:
                    self.sizes[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.sizes.pop, storage._cdata, None)
        self.seen.append(self.now())
        return result

    def now(self) -> float:
        return sum(self.sizes.values()) / SIZE


def logits(autocast: bool) -> Logits:
    """What its loss keeps and holds."""
    names = methods()
    head = torch.nn.Linear(8, VOCABULARY, bias=False).to(torch.bfloat16)
    hidden = torch.zeros(1, TOKENS, 8, dtype=torch.bfloat16)

    def model(input_ids, attention_mask):
        made = head(hidden)
        return SimpleNamespace(logits=made.float() if autocast else made)

    settings = SimpleNamespace(eps=1.0, mask_token_id=1, importance_weighting=True)
    config = SimpleNamespace(diffusion=settings, sample_packing=True, datasets=None)
    trainer = SimpleNamespace(axolotl_cfg=config, _special_token_ids=set(), store_metrics=lambda *_, **__: None)
    for name in WANTED["trainer.py"]:
        setattr(trainer, name, names[name].__get__(trainer))
    head.training = True
    model.training = True  # pyright: ignore[reportFunctionMemberAccess]
    with Live() as live:
        loss = trainer.compute_loss(model, {"input_ids": torch.full((1, TOKENS), 5)})
        forward, saved, start = max(live.seen), live.now(), len(live.seen)
        loss.backward()
    return Logits(round(saved), round(forward), round(max(live.seen[start:])))


@pytest.mark.parametrize("autocast", [True, False])
def test_the_loss_of_masked_tokens_keeps_and_holds_what_is_counted(autocast: bool):
    nothing: Any = {}
    run = Run(config=nothing, deepspeed=None, model=None, hardware=None, stack=Stack(), autocast=autocast)
    assert astuple(diffusion(run)) == astuple(logits(autocast))


def astuple(found: Logits) -> tuple[int, int, int]:
    return found.saved, found.forward, found.backward
