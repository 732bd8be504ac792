"""Two precisions at once: in the YAML and the DeepSpeed JSON, or both in the YAML."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, json_hit, only

NAMES = ("bf16", "fp16")


def finds(run: Run) -> Iterator[Hit]:
    """A dtype switched on or off in the JSON against the YAML; fp16 with bf16 in the YAML."""
    wrong = contradictions(run)
    if wrong:
        name, value = wrong[0]
        meant = f"the YAML trains in {run.precision}: the trainer stops; set the same in both files"
        if told(run)[name] is (name == run.precision):
            edits = tuple(Set(f"{other}.enabled", told(run)[other]) for other, _ in wrong)
        else:
            meant = "`float16: true` turns mixed precision off in the trainer: it stops; write `fp16: true` instead"
            edits = ()
        message = f"`{name}.enabled: {value}`, but {meant}"
        yield json_hit(run, f"{name}.enabled", message, *edits)
    if run.is_on("fp16") and run.is_on("bf16"):
        message = "`fp16: true` has no effect with `bf16: true`: axolotl trains in bf16; remove it"
        yield Hit("fp16", message, (Remove("fp16"),), level="warning")
    elif run.is_on("fp16") and run.is_on("bfloat16"):
        message = "`fp16: true` with `bfloat16: true`: the trainer takes one of the two and stops; remove `fp16`"
        yield Hit("fp16", message, (Remove("fp16"),))


def contradictions(run: Run) -> list[tuple[str, str]]:
    """What the JSON says outright of bf16 and fp16, where the trainer is told otherwise."""
    section = run.deepspeed
    undecided = run.hardware is not None and not run.hardware.gpu.bf16 and run.config.get("bf16") in (None, "auto")
    if section is None or run.zero is None or undecided:
        return []
    said = {name: section.at(f"{name}.enabled") for name in NAMES}
    return [
        (name, str(value).lower())
        for name, value in said.items()
        if value is not None and value != "auto" and value is not told(run)[name]
    ]


def told(run: Run) -> dict[str, bool]:
    """What axolotl switches on in the trainer: ``float16`` only loads the weights that way."""
    return {"bf16": run.precision == "bf16", "fp16": run.precision == "fp16" and run.is_on("fp16")}


def no_effect(run: Run) -> bool:
    """Whether all that is found is a key without effect."""
    return not contradictions(run) and run.is_on("bf16")


rule = Rule(
    id="precision-mismatch",
    stage="lint",
    title="Two precisions at once",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        transformers compares `bf16.enabled` and `fp16.enabled` of the JSON with what the YAML made of the trainer, and
        accelerate does so again. Neither of the two wins: both raise an error, once the model is loaded. What is left
        out, or "auto", follows the YAML.
    """,
    cost="The YAML's precision counts, where the JSON's may have been meant.",
    safe=no_effect,
    source=(
        "transformers/integrations/deepspeed.py:180-181,253-259@5.16.1; "
        "accelerate/utils/dataclasses.py:1430-1435@1.13.0; transformers/training_args.py:1745-1746@5.16.1; "
        "axolotl/utils/config/__init__.py:195-196@0.19.0; "
        "axolotl/core/builders/base.py:270-278@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "fp16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "fp16": {"enabled": false},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "bf16: false",
            "fp16: true",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            gpus="8x v100-32gb",
            fires=True,
        ),
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: true
                fp16: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: true
            """,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "bf16: auto",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            gpus="8x a100-80gb",
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "bf16: false",
            "deepspeed: deepspeed_configs/zero3.json",
            gpus="8x v100-32gb",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: zero.json",
            gpus="",
            deepspeed='{"fp16": {"enabled": true}}',
            fires=True,
        ),
        but(gpus="1x a100-80gb", fires=True),
        but("fp16: true", "deepspeed: deepspeed_configs/zero3_bf16.json", gpus="8x v100-32gb", deepspeed=""),
        Example(
            gpus="8x v100-32gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                bf16: false
                float16: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "fp16": {"enabled": true}
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "fp16": {"enabled": true}
                }
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "bfloat16: true"),
        but(
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("bf16", "float16"),
            gpus="1x a100-80gb",
            deepspeed='{"fp16": {"enabled": true}}',
        ),
    ),
)
