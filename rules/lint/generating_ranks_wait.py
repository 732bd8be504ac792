"""Evaluation that generates while FSDP shards the model."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.learning.schedule import evaluation_comes

TRACKERS = ("use_wandb", "use_mlflow", "use_comet")


def finds(run: Run) -> Iterator[Hit]:
    """Each way of evaluating by answers, or by a benchmark, where ranks share the model."""
    if run.fsdp is None or not run.may_shard or not evaluation_comes(run):
        return
    tabled = run.config.get("eval_table_size") and any(run.is_on(key) for key in TRACKERS)
    keys = [key for key in ("do_causal_lm_eval", "do_bench_eval") if run.is_on(key)]
    for key in [*keys, *(["eval_table_size"] if tabled else [])]:
        message = (
            f"`{key}` under FSDP risks that the run hangs: ranks that are done leave the others waiting for shards"
        )
        yield Hit(key, f"{message}; evaluate a checkpoint on one GPU, or use DeepSpeed", on_key=True)


rule = Rule(
    id="generating-ranks-wait",
    stage="lint",
    title="Evaluation by answers while FSDP shards the model",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Each rank answers its own prompts, and each token needs all ranks to gather the layers. transformers lets ranks
        that are done go on until all are, but only of a model that it has sharded itself, or DeepSpeed: accelerate's
        FSDP does not set what it looks for. A run with benchmarks was reported to hang.
    """,
    source=(
        "transformers/generation/utils.py:2244-2249@5.16.1, transformers/distributed/fsdp.py:50-61,233@5.16.1; "
        "axolotl/utils/callbacks/__init__.py:461-466,584@0.19.0; https://github.com/axolotl-ai-cloud/axolotl/issues/2058"
    ),
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-8B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            "do_causal_lm_eval: true",
            "val_set_size: 0.1",
            "eval_steps: 50",
            gpus="2x a100-80gb",
            fires=True,
        ),
        but("do_bench_eval: true", without=("do_causal_lm_eval",), fires=True),
        but("eval_table_size: 5", "use_wandb: true", without=("do_causal_lm_eval",), fires=True),
        but("eval_table_size: 5", without=("do_causal_lm_eval",)),
        but("use_wandb: true", without=("do_causal_lm_eval",)),
        but("val_set_size: 0"),
        but(gpus="1x a100-80gb"),
        but("micro_batch_size: 1", without=("fsdp_version", "fsdp_config")),
    ),
)
