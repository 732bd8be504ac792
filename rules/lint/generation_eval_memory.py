"""Evaluation by generating gathers the whole model."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run
from advisor.memory import Estimate, estimate
from advisor.memory.weights import weights_of
from advisor.util import gib

STATES = ("weights", "gradients", "optimizer", "overhead")


def finds(run: Run) -> Iterator[Hit]:
    """ZeRO-3, whose shards are put together on every GPU for as long as it generates."""
    if run.config.get("do_causal_lm_eval") is not True or run.zero_stage != 3 or run.rl is not None:
        return
    found = estimate(run)
    if found is None or run.model is None or not run.evaluates:
        return
    whole = weights_of(run, run.model).bytes
    needed = states(found) + whole
    if needed <= found.allocated_peak:
        return
    fits = needed <= found.usable
    yield Hit(
        "do_causal_lm_eval",
        "`do_causal_lm_eval: true` under ZeRO-3 gathers all weights on each GPU to generate:"
        f" {gib(needed)} including the states, {gib(found.usable)} usable; "
        + ("training itself needs less" if fits else "leave it out, or generate from a checkpoint"),
        level="note" if fits else "warning",
    )


def states(found: Estimate) -> int:
    """What stays on a GPU while it evaluates, activations and logits left out."""
    evaluation = next(phase for phase in found.phases if phase.name == "evaluation")
    return sum(term.bytes for term in evaluation.terms if term.part in STATES)


rule = Rule(
    id="generation-eval-memory",
    stage="lint",
    title="Evaluation by generating gathers the whole model",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        `do_causal_lm_eval` answers every prompt of the evaluation set. To avoid gathering each layer again for each
        token, TRL puts the whole model together on every GPU first, and keeps it until the last answer: with a model
        that only fits in shards, evaluation fails where training runs.
    """,
    source="axolotl/utils/callbacks/__init__.py:461-466@0.19.0; trl/models/utils.py:130-156@1.9.0;"
    " https://github.com/axolotl-ai-cloud/axolotl/issues/3203",
    examples=(
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero3_bf16.json
                val_set_size: 0.05
                eval_sample_packing: false
                evals_per_epoch: 1
                do_causal_lm_eval: true
            """,
            fires=True,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero1.json
                val_set_size: 0.05
                eval_sample_packing: false
                evals_per_epoch: 1
                do_causal_lm_eval: true
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-32B
                deepspeed: deepspeed_configs/zero3_bf16.json
                val_set_size: 0.05
                evals_per_epoch: 1
                do_causal_lm_eval: true
            """,
        ),
        Example(
            gpus="",
            before="""
                base_model: Qwen/Qwen2.5-32B
                deepspeed: deepspeed_configs/zero3_bf16.json
                val_set_size: 0.05
                evals_per_epoch: 1
                do_causal_lm_eval: true
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                deepspeed: deepspeed_configs/zero3_bf16.json
                val_set_size: 0.05
                evals_per_epoch: 1
                do_causal_lm_eval: true
                rl: dpo
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-32B
                deepspeed: deepspeed_configs/zero3_bf16.json
                do_causal_lm_eval: true
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                deepspeed: deepspeed_configs/zero3_bf16.json
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
        ),
    ),
)
