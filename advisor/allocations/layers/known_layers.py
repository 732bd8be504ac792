"""Which layers tapes have, by what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.activations.experts import adapted, never_freed
from advisor.memory.activations.state_spaces import in_pieces
from advisor.memory.lora_targets import everywhere, is_target, stacked

if TYPE_CHECKING:
    from advisor.models import Attention, Block
    from advisor.run import Run

OF_EXPERTS = frozenset({"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"})


def is_taped(run: Run, block: Block) -> bool:
    """Whether a layer is of one of the kinds."""
    return any(kind(run, block) for kind in (is_plain, is_side_by_side, _is_convolved, is_delta_net, is_single))


def is_plain(run: Run, block: Block) -> bool:
    """Whether a layer has softmax attention and one MLP, or experts, and nothing else."""
    attention, mlp = block.attention, block.mlp
    counts = tuple(sum(linear.kind == kind for linear in block.linears) for kind in ("attention", "mlp"))
    sparse = mlp is not None and mlp.experts > 0
    latent = is_latent(block)
    return (
        (latent or _is_softmax(attention))
        and mlp is not None
        and (is_routed(run, block) if sparse else True)
        and counts in ({(5, 3)} if latent else {(4, 0), (4, 3), (4, 4)} if sparse else {(4, 3), (2, 2), (4, 2), (2, 3)})
        and len(block.linears) == sum(counts)
    )


def is_latent(block: Block) -> bool:
    """Whether a layer has latent attention with narrow queries, too, and values as wide as keys, which none pads."""
    one = block.attention
    narrow = any(linear.name == "q_a_proj" for linear in block.linears)
    return one is not None and one.kind == "latent" and narrow and one.value_width == one.query_width


def _is_softmax(attention: Attention | None) -> bool:
    """Whether attention does not norm its values."""
    return attention is not None and attention.kind == "softmax" and not attention.value_norm


def is_routed(run: Run, block: Block) -> bool:
    """Whether a tape has a layer's experts: stacked, by grouped products and without adapters.

    PEFT takes targets that are called as experts' linears were for the stacks, too:
    peft/utils/transformers_weight_conversion.py, _convert_peft_config_moe@0.20.0.
    """
    lora = run.lora
    if lora is not None and (
        everywhere(lora)
        or any(name.rpartition(".")[2] in OF_EXPERTS for name in lora.targets)
        or any(is_target(lora, linear) for linear in block.linears if linear.kind == "mlp")
    ):
        return False
    return run.experts == "grouped_mm" and stacked(run) and not (adapted(run) or never_freed(run))


def _is_fed(run: Run, block: Block) -> bool:
    """Whether a layer has one MLP, or experts that a tape has."""
    return block.mlp is not None and (not block.mlp.experts or is_routed(run, block))


def is_side_by_side(run: Run, block: Block) -> bool:
    """Whether a layer has attention, an MLP and Mamba in one kernel, whose last projection is no module to it."""
    last = next((linear for linear in block.linears if linear.name == "out_proj"), None)
    adapted = run.lora is not None and last is not None and is_target(run.lora, last)
    return (
        block.states is not None
        and block.states.chunk > 0
        and block.attention is not None
        and block.attention.kind == "softmax"
        and not (in_pieces(run) or adapted)
    )


def _is_convolved(run: Run, block: Block) -> bool:
    """Whether a layer has a short convolution, and one MLP or experts."""
    return block.attention is not None and block.attention.kind == "conv" and _is_fed(run, block)


def is_single(run: Run, block: Block) -> bool:
    """Whether a layer is Mamba-2 in pieces and without adapters, softmax attention, an MLP or experts, and no more."""
    if block.norms != 1 or (block.attention is None) == (block.mlp is None):
        return False
    if block.states is not None:
        adapted = run.lora is not None and any(is_target(run.lora, linear) for linear in block.linears)
        return block.states.chunk > 0 and in_pieces(run) and not adapted
    return _is_fed(run, block) or _is_softmax(block.attention)


def is_delta_net(run: Run, block: Block) -> bool:
    """Whether a layer has a delta net, whose linears none of axolotl's functions computes, and one MLP or experts.

    axolotl/monkeypatch/lora_kernels.py:587-614@0.19.0: its layers for packed rows alone call them.
    """
    attention, lora = block.attention, run.lora
    fused = lora is not None and run.sample_packing and bool(lora.kernels & {"qkv", "o"})
    mixers = [linear for linear in block.linears if linear.kind == "mixer"]
    taken = fused and lora is not None and any(is_target(lora, linear) for linear in mixers)
    known = attention is not None and attention.kind == "linear" and attention.state > 0
    return known and _is_fed(run, block) and not taken
