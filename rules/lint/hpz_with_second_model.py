"""hpZ's groups of GPUs, which DeepSpeed makes for one model alone."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, json_hit
from advisor.run import Zero
from advisor.run.axolotl.released import loads_through_quantizer

SIZE = "zero_optimization.zero_hpz_partition_size"


def finds(run: Run) -> Iterator[Hit]:
    """Where ``zero.Init`` builds the trained model and then a second one."""
    match run.zero:
        case Zero(stage=3, secondary_partition_size=size) if size > 1 and builds_second_model(run):
            message = (
                f"`zero_hpz_partition_size: {size}` next to `rl: {run.rl}`: DeepSpeed stops as axolotl loads the model"
                " a second time; remove it"
            )
            yield json_hit(run, SIZE, message, Remove(SIZE))
        case _:
            return


def builds_second_model(run: Run) -> bool:
    """Whether axolotl loads the model once more for ``rl``, used or not, and ``zero.Init`` builds both."""
    twice = run.rl not in {None, "orpo"} and run.adapter is None
    return twice and run.stack.trainer == "axolotl" and not loads_through_quantizer(run)


rule = Rule(
    id="hpz-with-second-model",
    stage="lint",
    title="hpZ next to a second model",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        A full fine-tune with `rl` loads the model twice, the second one as the reference; only ORPO does not. ZeRO-3
        builds each under `zero.Init`, which makes the groups of `zero_hpz_partition_size`. DeepSpeed keeps them for
        the whole process and asserts that there are none yet: "ZeRO parameter intra parallel group is already
        initialized".
    """,
    cost="Weights are gathered over all GPUs, those of other nodes among them.",
    safe=True,
    source=(
        "axolotl/train.py:143-164@0.19.0; transformers/modeling_utils.py:3799-3808@5.16.1; "
        "deepspeed/runtime/zero/partition_parameters.py:1038-1041@0.18.9; deepspeed/utils/groups.py:715-716@0.18.9; "
        "tests/oracles/test_hpz.py"
    ),
    examples=lambda: (
        Example(
            gpus="2n8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                rl: dpo
                deepspeed: ds.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "zero_hpz_partition_size": 8
                  },
                  "bf16": {"enabled": true}
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3
                  },
                  "bf16": {"enabled": true}
                }
            """,
        ),
        but("rl: simpo", fires=True),
        but("rl: orpo"),
        but(without=("rl",)),
        but("adapter: lora", "lora_r: 16", "lora_target_linear: true"),
        but(deepspeed='{"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1}}'),
        but(deepspeed='{"zero_optimization": {"stage": 2, "zero_hpz_partition_size": 8}}'),
        but(deepspeed='{"zero_optimization": {"stage": 3}}'),
        but("base_model: openai/gpt-oss-20b"),
        but(stack={"trainer": "hf-trainer"}),
    ),
)
