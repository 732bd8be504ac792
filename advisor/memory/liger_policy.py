"""GRPO's loss in Liger: rows one by one, without logits, but with whole gradients of the head, trained or not.

trl/trainer/grpo_trainer.py, compute_liger_loss@1.9.0; liger_kernel/chunked_loss/fused_linear_ppo.py@0.8.1. Read.
"""

from advisor.models import Architecture
from advisor.run import Run

TILE_ROWS, TILE_COLUMNS, TILES = 2048, 4096, 3
"""Logits of so many tokens and entries of the vocabulary at once, in fp32, with their powers and gradients."""


def skips_averaging(run: Run) -> bool:
    """Whether DPO's fused loss calls the model past DDP, which then averages no gradients.

    trl/trainer/dpo_trainer.py:1725-1738@1.9.0: only ZeRO-3 and FSDP are asked for a forward. DeepSpeed's hooks are at
    the weights, torch's DDP waits for its own forward: torch/nn/parallel/distributed.py, _pre_forward@2.13.0.
    """
    return run.rl == "dpo" and run.world_size > 1 and run.sharding is None


def kept(run: Run, model: Architecture, tokens: int) -> int:
    """Bytes from the loss's forward to its backward: gradients of its input and of the head."""
    return run.compute_bytes * tokens * model.hidden_size + head_width(run) * _head_elements(model)


def forward_peak(run: Run, model: Architecture, tokens: int) -> int:
    """With one row's gradients in fp32, and tiles of its logits, or then the head's gradient cast back."""
    cast = head_width(run) * _head_elements(model) if head_width(run) != 4 else 0
    row = tokens // max(1, run.micro_batch_size)
    tiles = 4 * TILES * min(row, TILE_ROWS) * min(model.outputs, TILE_COLUMNS)
    single = 4 * (_head_elements(model) + row * model.hidden_size)
    return kept(run, model, tokens) + single + max(cast, tiles)


def backward_peak(run: Run, model: Architecture, tokens: int) -> int:
    """Where gradients are accumulated, both are multiplied by a factor, each into a tensor of its own."""
    return kept(run, model, tokens) * (2 if run.gradient_accumulation_steps > 1 else 1)


def scores_again(run: Run) -> bool:
    """Whether log-probabilities are also made of logits, without gradients: for a reference, or of older answers.

    trl/trainer/grpo_trainer.py:2557-2567@1.9.0: with vLLM always, else where a step's answers come from an older model.
    """
    made = run.rollouts
    if made is None:
        return False
    steps = max(1, made.rows // run.micro_batch_size) * made.iterations
    return run.scores_reference or made.engine != "model" or run.gradient_accumulation_steps % steps != 0


def scoring_bytes(run: Run, model: Architecture, tokens: int) -> int:
    """Logits of that pass: fp32 next to those that they are copied from, or next to one row's powers."""
    logits, row = tokens * model.outputs, tokens // max(1, run.micro_batch_size) * model.outputs
    if run.precision == "fp32" or not run.autocast:
        return run.compute_bytes * (logits + row)
    return max(6 * logits, 4 * (logits + row))


def _head_elements(model: Architecture) -> int:
    """Elements of the head."""
    return model.outputs * model.hidden_size


def head_width(run: Run) -> int:
    """Bytes of one of them."""
    return 4 if run.embeddings_fp32 else run.compute_bytes
