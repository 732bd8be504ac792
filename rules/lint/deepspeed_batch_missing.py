"""Batch fields that the DeepSpeed JSON cannot do without."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, json_hit, only, without

SIZES = ("train_batch_size", "train_micro_batch_size_per_gpu")
STEPS = "gradient_accumulation_steps"


def finds(run: Run) -> Iterator[Hit]:
    """Where nothing says how large a batch is, or what accelerate takes for granted contradicts the YAML."""
    section = run.deepspeed
    if run.zero is None or section is None:
        return
    # axolotl itself says how large a micro batch is where samples are packed.
    filled_in = run.stack.trainer == "axolotl" and run.sample_packing
    if not filled_in and all(section.get(key) is None for key in SIZES):
        message = f"neither `{SIZES[0]}` nor `{SIZES[1]}` is there, and DeepSpeed stops at it; set both to `auto`"
        yield json_hit(run, "", message, *(Set(key, "auto") for key in SIZES))
    by_environment = run.stack.trainer == "axolotl" and run.rl is not None
    if by_environment and STEPS not in section and run.gradient_accumulation_steps > 1:
        message = (
            f"without `{STEPS}` the JSON counts as 1, and the trainer of `rl` stops at the YAML's "
            f"{run.gradient_accumulation_steps}; set it to `auto`"
        )
        yield json_hit(run, "", message, Set(STEPS, "auto"))


rule = Rule(
    id="deepspeed-batch-missing",
    stage="lint",
    title="Batch fields that the DeepSpeed JSON cannot do without",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        transformers fills batch fields in where they say "auto", and leaves out what is left out. DeepSpeed's engine
        then asserts that it knows one of the two batch sizes, after the model has been loaded; axolotl gives it one
        with packed samples alone. The accumulation may be missing, but for `rl`: there accelerate reads the JSON first,
        adds a 1, and transformers compares that with the YAML.
    """,
    safe=True,
    source=(
        "deepspeed/runtime/config.py:931-934@0.18.9; accelerate/utils/dataclasses.py:1268-1269@1.13.0; "
        "transformers/integrations/deepspeed.py:146-151,253-259,674-688@5.16.1; "
        "axolotl/core/builders/causal.py:192-193,460-463@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true}
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                rl: dpo
                gradient_accumulation_steps: 4
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto",
                  "gradient_accumulation_steps": "auto"
                }
            """,
        ),
        without("rl"),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: zero.json", "sample_packing: true", deepspeed="{}"),
        but(
            without=("gradient_accumulation_steps",),
            gpus="1x a100-80gb",
            deepspeed='{"train_micro_batch_size_per_gpu": "auto"}',
        ),
        but("deepspeed: deepspeed_configs/zero1.json", gpus="1x a100-80gb", deepspeed=""),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: zero.json",
            "fsdp:\n  - full_shard\n  - auto_wrap",
            deepspeed="{}",
        ),
        but(gpus="1x a100-80gb", deepspeed='{"train_micro_batch_size_per_gpu": "auto"}', stack={"trainer": "trl-sft"}),
        but(
            "sample_packing: true",
            without=("rl", "gradient_accumulation_steps"),
            deepspeed='{"zero_optimization": {"stage": 2}}',
            stack={"trainer": "trl-sft"},
            fires=True,
        ),
    ),
)
