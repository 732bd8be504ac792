"""Quantization-aware training: each linear layer quantizes its weight and input again, and autograd keeps the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import Block
    from advisor.run import Run

WEIGHT_ALONE = ""


@record
class Steps:
    """Bytes kept of each element of a weight, of each group, and of each linear's own input; and while it goes back.

    ``shared``: whether the input itself is kept, too, once for all linears that read it. Traced from torchao 0.17.0's
    modules as axolotl makes them (axolotl/utils/quantization.py@0.19.0), but for nvfp4 and mxfp4, which keep packed
    copies: torchao/prototype/qat, save_for_backward@0.17.0, read.
    """

    weight: float
    own_input: float
    passing: float = 0
    passing_input: float = 0
    group: int = 0
    shared: bool = True


PACKED = Steps(0.5625, 0.5625, 4, 2, shared=False)
STEPS: dict[tuple[str, str], Steps] = {
    ("int4", "int8"): Steps(18, 6, group=16, shared=False),
    ("int4", WEIGHT_ALONE): Steps(24, 0, group=10),
    ("int4", "float8_e4m3fn"): Steps(24, 16, group=10),
    ("float8_e4m3fn", "float8_e4m3fn"): Steps(16, 16, 3),
    ("ternary", WEIGHT_ALONE): Steps(2, 0),
    ("ternary", "int8"): Steps(2, 4, passing_input=10),
    **{(one, other): PACKED for one in ("nvfp4", "mxfp4") for other in (WEIGHT_ALONE, "nvfp4", "mxfp4")},
}


def steps(run: Run) -> Steps | None:
    """What fake quantization keeps; None without it."""
    found = run.fake_quantization
    return None if found is None else STEPS.get((found.weight, found.inputs))


def keeps_inputs(run: Run) -> bool:
    """Whether linears still read the tensors that they read without quantizers."""
    found = steps(run)
    return found is None or found.shared


def of_weights(run: Run, found: Steps, elements: int) -> float:
    """Bytes kept of so many elements of weights."""
    assert run.fake_quantization is not None
    return elements * (found.weight + found.group / run.fake_quantization.group)


def kept_by_quantizers(run: Run, block: Block) -> int:
    """Bytes of one layer's weights and inputs on their way through the quantizers."""
    found = steps(run)
    if found is None:
        return 0
    weights = sum(one.n_in * one.n_out for one in block.linears)
    inputs = sum(one.n_in for one in block.linears)
    return round(of_weights(run, found, weights) + run.tokens * found.own_input * inputs)


def passing_in_quantizers(run: Run, block: Block) -> int:
    """Bytes of the gradients of the steps of one weight, or of its input."""
    found = steps(run)
    if found is None:
        return 0
    weight = max((x.n_in * x.n_out for x in block.linears), default=0)
    width = max((x.n_in for x in block.linears), default=0)
    return round(found.passing * weight + found.passing_input * width * run.tokens)


def kept_by_head(run: Run, model: Architecture) -> int:
    """Likewise of the head, which only ternary quantization leaves as it is."""
    found = steps(run)
    if found is None or run.fake_quantization is None:
        return 0
    table = model.by_kind.get("embedding", 0) if run.fake_quantization.embedding else 0
    if run.fake_quantization.weight == "ternary":
        return round(of_weights(run, found, table))
    width = model.hidden_size
    return round(of_weights(run, found, table + width * model.outputs) + run.tokens * found.own_input * width)
