"""Numbers in the DeepSpeed JSON that contradict the YAML."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, json_hit, only

TRAINERS_CLIPPING = 1.0


def finds(run: Run) -> Iterator[Hit]:
    """Each number that is neither "auto" nor what the trainer will work with."""
    section = run.deepspeed
    if run.zero is None or section is None:
        return
    for key, expected, words in expectations(run):
        given = section.get(key)
        if given is not None and given not in ("auto", expected):
            shown = f'"{given}"' if isinstance(given, str) else given
            message = f"`{key}: {shown}` contradicts {words}: the trainer stops at it; set it to `auto`"
            yield json_hit(run, key, message, Set(key, "auto"))


def expectations(run: Run) -> Iterator[tuple[str, float, str]]:
    """What transformers compares, with what, and where that comes from."""
    micro, steps = run.micro_batch_size, run.gradient_accumulation_steps
    yield "train_micro_batch_size_per_gpu", micro, f"`micro_batch_size` {micro}"
    yield "gradient_accumulation_steps", steps, f"the YAML's accumulation of {steps}"
    if run.hardware is not None and run.tensor_parallel_size == run.context_parallel_size == 1:
        whole = micro * steps * run.world_size
        yield "train_batch_size", whole, f"{micro} rows x {steps} steps x {run.world_size} GPUs = {whole}"
    clipping = run.config.get("max_grad_norm")
    if clipping is None and run.rl is None:
        yield "gradient_clipping", TRAINERS_CLIPPING, "the default `max_grad_norm` of 1.0"
    elif isinstance(clipping, (int, float)):
        yield "gradient_clipping", clipping, f"`max_grad_norm: {clipping}`"


rule = Rule(
    id="deepspeed-batch-mismatch",
    stage="lint",
    title="Numbers in the DeepSpeed JSON that contradict the YAML",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        Neither wins: transformers compares the numbers of both files and raises "Please correct the following
        DeepSpeed config values that mismatch TrainingArguments" when training begins, after the model and the data
        have been loaded. A number in quotes counts as different. `auto` takes the YAML's.
    """,
    cost="The YAML's numbers count, where the JSON's may have been meant.",
    safe=False,
    source="transformers/integrations/deepspeed.py:105-158,253-259@5.16.1",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                micro_batch_size: 2
                gradient_accumulation_steps: 4
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": 1,
                  "gradient_accumulation_steps": 4,
                  "train_batch_size": 32
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto",
                  "gradient_accumulation_steps": 4,
                  "train_batch_size": "auto"
                }
            """,
        ),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": 2,
                  "gradient_accumulation_steps": "auto",
                  "train_batch_size": 64,
                  "gradient_clipping": 1.0
                }
            """
        ),
        but(without=("micro_batch_size", "gradient_accumulation_steps"), gpus="", deepspeed='{"train_batch_size": 64}'),
        but(
            "rl: dpo",
            without=("micro_batch_size", "gradient_accumulation_steps"),
            deepspeed='{"gradient_clipping": 1.0}',
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: zero.json",
            "fsdp:\n  - full_shard\n  - auto_wrap",
            deepspeed='{"gradient_accumulation_steps": 4}',
        ),
        but(
            "max_grad_norm: false",
            without=("micro_batch_size", "gradient_accumulation_steps"),
            deepspeed='{"gradient_clipping": 1.0}',
            fires=True,
        ),
        but(
            "rl: dpo",
            without=("micro_batch_size", "gradient_accumulation_steps"),
            deepspeed="""
                {"zero_optimization": {"stage": 2}, "gradient_clipping": 0.5, "train_micro_batch_size_per_gpu": "auto"}
            """,
        ),
        but(
            "micro_batch_size: 1",
            "gradient_accumulation_steps: 1",
            "tensor_parallel_size: 2",
            deepspeed='{"zero_optimization": {"stage": 2}, "train_batch_size": 4}',
        ),
    ),
)
