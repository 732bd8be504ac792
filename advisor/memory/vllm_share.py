"""How much of a training GPU vLLM needs for GRPO's answers."""

from math import ceil

from advisor.memory.generation import cache_bytes
from advisor.memory.weights import weights_of
from advisor.run import Run

USUAL = 0.3
"""TRL's own default: trl/trainer/grpo_config.py:154@1.9.0."""
WORKS_WITH = 0.05
"""Of the card, for what vLLM holds next to weights and cache."""
PARTS = 20
"""A share is written in twentieths."""


def vllm_share_needed(run: Run) -> float:
    """The share with which all answers of a GPU are made at once, and one of the model's full length can be."""
    assert run.model is not None and run.hardware is not None and run.rollouts is not None
    tokens = max(run.rollouts.rows * run.sequence_len, run.model.max_position_embeddings or 0)
    weights = run.compute_bytes * weights_of(run, run.model).elements
    share = (weights + tokens * cache_bytes(run, run.model)) / run.hardware.gpu.total_bytes + WORKS_WITH
    return max(USUAL, ceil(share * PARTS) / PARTS)
