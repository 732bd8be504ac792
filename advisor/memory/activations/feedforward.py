"""What the MLP or the experts keep, without the inputs of their linears."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.lora_kernels import fuses_mlp
from advisor.memory.activations.routed import expert_amounts, routing_amounts
from advisor.memory.activations.tiles import tiles
from advisor.models.layer_variant import LayerVariant

if TYPE_CHECKING:
    from advisor.models.blocks import Block, Mlp
    from advisor.run import Run


def mlp_amounts(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """The MLP of one layer."""
    mlp = block.mlp
    if mlp is None or tiles(run, block):
        return
    if not mlp.experts:
        yield from dense_amounts(n, family, mlp, "f", recomputed="glu" in run.liger or fuses_mlp(run, block))
        return
    yield from routing_amounts(n, family, mlp)
    yield from expert_amounts(run, n, family, mlp)
    if has_shared_gate(block):
        yield from ((n.compute, "h"), (n.compute, ONE))
    if mlp.shared_width:
        yield from dense_amounts(n, family, mlp, "f shared", recomputed="glu" in run.liger)


def has_shared_gate(block: Block) -> bool:
    """Whether the shared expert's output is gated: models/qwen2_moe, Qwen2MoeSparseMoeBlock.forward@5.16.1."""
    return any(linear.name == "shared_expert_gate" for linear in block.linears)


def dense_amounts(n: Numbers, family: LayerVariant, mlp: Mlp, symbol: str, *, recomputed: bool) -> Iterator[Amount]:
    """Gate, its activation and up.

    A kernel of Liger's or axolotl's recomputes the activation (liger_kernel/ops/swiglu.py@0.8.1).
    """
    if mlp.gated:
        yield (2 if recomputed else 3) * n.inner, symbol
        if mlp.thresholded:
            yield from ((n.inner, symbol), (n.inner, ONE))
        return
    yield n.inner, symbol
    extra = of_activation(n, family.activation) + (of_activation(n, family.activation_trained) if n.trained else 0)
    if extra:
        yield extra, symbol


def of_activation(n: Numbers, without_and_with: tuple[int, int]) -> int:
    """Bytes per element of an activation in plain operations: of one in fp32 throughout, as without autocast.

    An odd byte is a mask.
    """
    if n.inner != n.compute:
        numbers, mask = divmod(without_and_with[0], n.compute)
        return numbers * n.inner + mask
    return without_and_with[n.autocast]


def of_activation_gradient(n: Numbers, without_and_with: tuple[int, int]) -> int:
    """Likewise of an activation's backward, which has freed its mask: an odd byte is one that is freed."""
    if n.inner != n.compute:
        numbers, mask = divmod(-without_and_with[0], n.compute)
        return -numbers * n.inner - mask
    return without_and_with[n.autocast]


def shared_amounts(n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """What the MLP next to the experts keeps."""
    if mlp.shared_width:
        yield from dense_amounts(n, family, mlp, "f shared", recomputed=False)
