"""Gradients: how many bytes of them lie on one GPU, and when."""

from advisor.memory.groups import Weights
from advisor.memory.ledger import Term
from advisor.memory.optimizers import optimizer_named
from advisor.run import Run

AUTOGRAD = "torch: .grad has the parameter's dtype; zero_grad(set_to_none=True) frees it after the step"
DDP = "torch/nn/parallel/distributed.py: gradient_as_bucket_view=False keeps a bucket copy of every gradient"
ZERO_1_2 = "deepspeed/runtime/zero/stage_1_and_2.py:897-904,958-978,1513-1530@0.18.9"
ZERO_3 = "deepspeed/runtime/zero/stage3.py, grad_partitions_flat_buffer@0.18.9"


def gradient_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """All gradients of one micro-step, as they lie when backward ends."""
    if optimizer_named(run.optimizer).fused_backward and run.zero is None and run.fsdp is None:
        largest = 2 * weights.largest_trained
        return (Term("one gradient at a time", "gradients", largest, f"2 B x {weights.largest_trained:,}", AUTOGRAD),)
    if run.zero is not None:
        return zero_gradients(run, weights)
    n = run.shard_size if run.fsdp is not None else 1
    offloaded = run.fsdp is not None and run.fsdp.offload_params
    bytes_ = 0 if offloaded else weights.trained_bytes // n
    return (
        Term(
            "gradients",
            "gradients",
            bytes_,
            f"{weights.trained_bytes:,} B of trained weights / {n}",
            AUTOGRAD,
        ),
    )


def zero_gradients(run: Run, weights: Weights) -> tuple[Term, ...]:
    """Gradients under DeepSpeed, in half precision unless accumulated in fp32."""
    zero, trained, n = run.zero, weights.trained_elements, run.shard_size
    assert zero is not None
    half = 4 if run.precision == "fp32" else 2
    match zero.stage:
        case 0:
            return (Term("gradients", "gradients", half * trained, f"{half} B x {trained:,}", ZERO_1_2),)
        case 1 | 2 if zero.offload_optimizer != "gpu":
            staging = half * weights.largest_trained
            text = f"{half} B x {weights.largest_trained:,}, the largest parameter; gradients leave bucket by bucket"
            return (Term("gradient staging", "gradients", staging, text, "stage_1_and_2.py:569@0.18.9"),)
        case 1:
            whole = run.gradient_accumulation_steps > 1 or not zero.overlap_comm
            bytes_ = half * trained if whole else half * trained // n
            why = "whole until the boundary" if whole else f"reduced as they come, / {n}"
            return (Term("gradients", "gradients", bytes_, f"{half} B x {trained:,}, {why}", ZERO_1_2),)
        case 2:
            copies = 2 if run.gradient_accumulation_steps > 1 else 1
            text = f"{half} B x {trained:,} / {n}" + (" x 2, accumulated and new" if copies == 2 else "")
            return (Term("gradient shard", "gradients", copies * half * trained // n, text, ZERO_1_2),)
        case _:
            if zero.offload_optimizer != "gpu":
                return ()
            width = 4 if zero.fp32_gradient_accumulation else half
            return (
                Term(
                    "gradient shard",
                    "gradients",
                    width * trained // n,
                    f"{width} B x {trained:,} / {n}",
                    ZERO_3,
                ),
            )


def between_micro_steps(run: Run, weights: Weights) -> tuple[Term, ...]:
    """What of the gradients is there during forward: the accumulated ones, and buffers that are never freed."""
    persistent = run.zero is not None and (run.zero.stage == 3 or run.zero.offload_optimizer != "gpu")
    if run.gradient_accumulation_steps == 1 and not persistent:
        return ()
    if run.zero is not None and run.zero.stage == 2 and run.zero.offload_optimizer == "gpu":
        (term,) = zero_gradients(run, weights)
        return (
            Term(
                term.name,
                term.part,
                term.bytes // 2,
                term.formula.replace(" x 2, accumulated and new", ""),
                term.source,
            ),
        )
    return gradient_terms(run, weights)


def bucket_copies(run: Run, weights: Weights) -> tuple[Term, ...]:
    """DDP's reducer keeps every gradient a second time, for as long as the model lives."""
    if run.world_size == 1 or run.zero is not None or run.fsdp is not None:
        return ()
    text = f"{weights.trained_bytes:,} B of trained weights"
    return (Term("DDP buckets", "gradients", weights.trained_bytes, text, DDP),)
