"""Evaluation by generating gathers the whole model."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, gib, only
from advisor.memory import estimate
from advisor.memory.generation import GATHERED


def finds(run: Run) -> Iterator[Hit]:
    """ZeRO-3, whose shards are put together on every GPU for as long as it generates."""
    found = estimate(run)
    if found is None or not any(term.source == GATHERED for term in found.peak.terms):
        return
    needed = found.allocated_peak
    fits = needed <= found.usable
    yield Hit(
        "do_causal_lm_eval",
        "`do_causal_lm_eval: true` under ZeRO-3 gathers all weights on each GPU to generate:"
        f" {gib(needed)} with the states, {gib(found.usable)} usable; "
        + ("training itself needs less" if fits else "leave it out, or generate from a checkpoint"),
        level="note" if fits else "warning",
    )


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
    examples=lambda: (
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
        but("base_model: Qwen/Qwen2.5-7B", "deepspeed: deepspeed_configs/zero1.json"),
        but(
            without=("sequence_len", "gradient_checkpointing", "attn_implementation", "eval_sample_packing"),
            gpus="1x a100-80gb",
        ),
        but(without=("sequence_len", "gradient_checkpointing", "attn_implementation", "eval_sample_packing"), gpus=""),
        but(
            "rl: dpo", without=("sequence_len", "gradient_checkpointing", "attn_implementation", "eval_sample_packing")
        ),
        only("base_model: Qwen/Qwen2.5-32B", "deepspeed: deepspeed_configs/zero3_bf16.json", "do_causal_lm_eval: true"),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            gpus="8x a100-80gb",
        ),
    ),
)
