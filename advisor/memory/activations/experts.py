"""Stacked experts: the width in which they compute, and what of their weights is unpacked or copied for a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.lora_targets import stacked
from advisor.run import Fsdp

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import Block
    from advisor.run import Run

FIXED_4BIT = "0.50.0"
"""bitsandbytes whose hooks empty the cache even where a forward ends early: nn/parametrize.py@0.50.2, always_call."""
FIXED_8BIT = "0.20.0"
"""axolotl after the one whose own hooks do not: monkeypatch/moe_quant.py:40-68@0.19.0."""
NAMES = {"gate_up_proj": "up", "up_proj": "up", "gate_proj": "up", "down_proj": "down"}
"""What ``lora_target_parameters`` calls the two stacks; unfused names stand for the fused one.

axolotl/monkeypatch/moe_quant.py:177-180@0.19.0.
"""


def checkpoints(run: Run) -> bool:
    """Whether only layer inputs are kept: by the trainer's checkpointing or FSDP's."""
    return run.activation_checkpointing or (isinstance(run.sharding, Fsdp) and run.sharding.activation_checkpointing)


def ends_early(run: Run) -> bool:
    """Whether checkpoints stop a layer's recomputation before its end: non-reentrant ones.

    FSDP's are: axolotl/monkeypatch/accelerate/fsdp2.py:477-491@0.19.0; torch/utils/checkpoint.py@2.13.0.
    """
    return checkpoints(run) and not (run.activation_checkpointing and run.reentrant)


def quantized(run: Run) -> bool:
    """Whether stacked experts are quantized, and unpacked whenever a layer asks for them."""
    return run.quantize_moe_experts and stacked(run)


def never_freed(run: Run) -> bool:
    """Whether unpacked experts stay in torch's cache of parametrizations, which checkpoints keep from being emptied.

    The hook that empties it runs after the experts' forward, which a non-reentrant checkpoint leaves early:
    bitsandbytes issue 2005; torch/nn/utils/parametrize.py, cached@2.13.0.
    """
    if not quantized(run) or not ends_early(run):
        return False
    if run.quantization == "int8":
        return not run.stack.at_least("axolotl", FIXED_8BIT)
    return run.experts != "scattermoe" and not run.stack.at_least("bitsandbytes", FIXED_4BIT)


def expert_width(run: Run, compute: int) -> int:
    """Bytes per element in which experts compute, and that are unpacked of quantized ones.

    Grouped products are blind to autocast and cast their input to the weight's dtype (integrations/moe.py,
    _grouped_mm@5.16.1); int8 is unpacked to fp32 (bitsandbytes/functional.py, int8_vectorwise_dequant@0.50.2).
    ScatterMoE casts weights to the input's dtype (axolotl/integrations/kernels/libs/scattermoe_lora/
    parallel_linear_lora.py:78-80@0.19.0), and the loop over experts calls linears, which autocast casts.
    """
    if not stacked(run) or run.experts != "grouped_mm":
        return compute
    if quantized(run):
        return 4 if run.quantization == "int8" else compute
    return max(compute, _stored_width(run)) if run.sharding is None else compute


def _stored_width(run: Run) -> int:
    """Bytes per element of experts that are not quantized: axolotl does not undo PEFT's upcast of them."""
    released = run.quantization in {"mxfp4", "nvfp4", "fp8"}
    return 4 if not released and (run.upcasts_unquantized or run.stack.base_dtype == "float32") else 2


def stacks(block: Block) -> dict[str, int]:
    """Elements of a layer's two stacks: gate and up, and down."""
    mlp = block.mlp
    if mlp is None or not mlp.experts:
        return {}
    one = mlp.experts * mlp.width * (mlp.latent or block.hidden)
    return {"up": 2 * one if mlp.gated else one, "down": one}


def adapted(run: Run) -> frozenset[str]:
    """Which of the two stacks have adapters of their own."""
    if run.lora is None:
        return frozenset()
    names = (name.rsplit(".", 1)[-1] for name in run.lora.target_parameters)
    return frozenset(NAMES[name] for name in names if name in NAMES)


def merged(run: Run, compute: int, block: Block) -> list[int]:
    """Bytes of the stacks that are added to their adapters in each forward, and that autograd keeps.

    peft/tuners/lora/layer.py, ParamWrapper and _LoraParameterProxy@0.20.0: the sum is a tensor of its own. ScatterMoE
    takes the adapter apart (axolotl/integrations/kernels/libs/scattermoe_lora/experts_lora_fastpath.py@0.19.0).
    """
    if run.experts == "scattermoe":
        return []
    width, targets = expert_width(run, compute), adapted(run)
    return [width * elements for name, elements in stacks(block).items() if name in targets]


def kept_weights(run: Run, compute: int, block: Block) -> int:
    """Bytes of one layer's experts that are made in its forward and kept until its backward.

    Merged with adapters, or unpacked: a product keeps its weight for the gradient of its input. What torch's cache
    never lets go of is counted once for all layers, and ScatterMoE unpacks adapted experts again.
    """
    kept = sum(merged(run, compute, block))
    if quantized(run) and not never_freed(run):
        width, targets = expert_width(run, compute), adapted(run)
        kept += sum(width * elements for name, elements in stacks(block).items() if name not in targets)
    return kept


def used_weights(run: Run, compute: int, block: Block) -> int:
    """Bytes of the second stack where it is unpacked for one layer: its product lets go of it before the next one."""
    if not quantized(run) or never_freed(run) or run.experts != "grouped_mm" or "down" in adapted(run):
        return 0
    return expert_width(run, compute) * stacks(block).get("down", 0)


def passing_weights(run: Run, compute: int, block: Block) -> int:
    """Bytes of the largest copy of a stack that comes and goes in one layer's backward.

    The gradient of a merged one; what ScatterMoE unpacks again, or the gradient that it works out of a stack without
    an adapter, frozen or not (the same folder's parallel_experts.py, ParallelLinear.backward@0.19.0). Liger's experts
    fill the gradients of both stacks, frozen or not (liger_kernel/ops/fused_moe.py, backward@0.8.1).
    """
    sizes = stacks(block)
    if run.lora is not None and run.experts != "scattermoe" and "glu" in run.liger and stacked(run):
        return compute * sum(sizes.values())
    if run.experts != "scattermoe" or run.lora is None:
        return max(merged(run, compute, block), default=0)
    targets = adapted(run)
    passing = sizes if quantized(run) else {name: size for name, size in sizes.items() if name not in targets}
    return compute * max(passing.values(), default=0)


def unpacked_bytes(run: Run, compute: int, block: Block) -> int:
    """Bytes of a layer's experts that its forward holds unpacked, without gradients."""
    if not quantized(run):
        return max(merged(run, compute, block), default=0)
    return 0 if never_freed(run) else expert_width(run, compute) * sum(stacks(block).values())


def cached_elements(run: Run, model: Architecture) -> int:
    """Elements of the experts that are unpacked for good."""
    if not never_freed(run):
        return 0
    return sum(block.count * sum(stacks(block).values()) for block in model.blocks)
