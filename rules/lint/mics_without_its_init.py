"""MiCS around weights that transformers has sharded already."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, json_hit

ZERO = "zero_optimization."
SIZE = f"{ZERO}mics_shard_size"
NEEDED_WITH_MICS = f"{ZERO}mics_hierarchical_params_gather"


def finds(run: Run) -> Iterator[Hit]:
    """Where stage 3 is to shard over fewer GPUs than all, and the model is built by ``zero.Init``."""
    section = run.deepspeed
    if section is None or run.zero_stage != 3 or run.stack.trainer != "axolotl" or run.quantization is not None:
        return
    size = section.at(SIZE)
    if isinstance(size, int) and size > 0:
        edits = [Remove(SIZE)] + [Remove(NEEDED_WITH_MICS)] * (section.at(NEEDED_WITH_MICS) is not None)
        message = f"`mics_shard_size: {size}`: DeepSpeed stops, as transformers shards the model over all GPUs; remove"
        yield json_hit(run, SIZE, f"{message} it", *edits)


rule = Rule(
    id="mics-without-its-init",
    stage="lint",
    title="MiCS around weights that transformers has sharded already",
    finds=finds,
    level="error",
    proof="read",
    why="""
        MiCS shards over groups of GPUs, which its own `MiCS_Init` writes onto every weight as the model is built.
        transformers builds models of ZeRO-3 under `zero.Init`, which shards over all GPUs and knows no groups;
        DeepSpeed then asserts that they are missing.
    """,
    cost="Weights are gathered from all GPUs, those of other nodes among them.",
    safe=True,
    source="transformers/modeling_utils.py:3799-3808@5.16.1; deepspeed/runtime/zero/mics.py:383-389@0.18.9",
    examples=lambda: (
        Example(
            gpus="16x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: ds.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "mics_shard_size": 8,
                    "mics_hierarchical_params_gather": true
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
        Example(
            gpus="16x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: ds.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "mics_shard_size": 8
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
        but(deepspeed='{"zero_optimization": {"stage": 3, "mics_shard_size": -1}}'),
        but(deepspeed='{"zero_optimization": {"stage": 3, "mics_shard_size": "auto"}}'),
        but(deepspeed='{"zero_optimization": {"stage": 2, "mics_shard_size": 8}}'),
        but(deepspeed='{"zero_optimization": {"stage": 3, "mics_shard_size": 8}}', stack={"trainer": "hf-trainer"}),
        but(
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_target_linear: true",
            deepspeed='{"zero_optimization": {"stage": 3, "mics_shard_size": 8}}',
        ),
    ),
)
