"""ZeRO-3 that saves shards and no model."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, json_hit, only

ZERO = "zero_optimization."
KEY = "stage3_gather_16bit_weights_on_model_save"
NAMES = (KEY, "gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save")


def finds(run: Run) -> Iterator[Hit]:
    """Where the weights stay in shards; adapters are gathered unasked, and "auto" is ``deepspeed-auto-ignored``'s."""
    section = run.deepspeed
    if run.zero_stage != 3 or section is None or run.adapter is not None or run.tensor_parallel_size > 1:
        return
    if any(section.at(ZERO + name) in (True, "auto") for name in NAMES):
        return
    given = next((name for name in NAMES if section.has(ZERO + name)), None)
    message = (
        f"`{given or KEY}` is {'not true' if given else 'missing'}: ZeRO-3 then saves one shard a GPU and no "
        f"`model.safetensors`; set it to true, or run `zero_to_fp32.py` on what is saved"
    )
    yield json_hit(run, ZERO + (given or "stage"), message, Set(ZERO + (given or KEY), True))


rule = Rule(
    id="gather-on-save",
    stage="lint",
    title="ZeRO-3 that saves shards and no model",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        DeepSpeed's default is false. accelerate then refuses to collect the weights, and transformers saves DeepSpeed's
        own checkpoint instead: weights and optimizer states in shards, which `from_pretrained` cannot read. An
        adapter's weights are gathered whatever this says.
    """,
    cost="Each save gathers the weights layer by layer into the first process's host memory: 2 bytes a parameter.",
    safe=True,
    source=(
        "transformers/trainer.py:3831-3854@5.16.1; accelerate/accelerator.py:4012-4033@1.13.0; "
        "deepspeed/runtime/zero/config.py:250@0.18.9; axolotl/train.py:387-390@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "stage3_gather_16bit_weights_on_model_save": false
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "stage3_gather_16bit_weights_on_model_save": true
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but("deepspeed: deepspeed_configs/zero3_bf16.json", deepspeed=""),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            deepspeed="""
                {
                  "zero_optimization": {"stage": 3},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but("tensor_parallel_size: 2", gpus="1x a100-80gb", deepspeed='{"zero_optimization": {"stage": 3}}'),
        only("base_model: Qwen/Qwen2.5-14B", "deepspeed: deepspeed_configs/zero1.json"),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3, "gather_16bit_weights_on_model_save": false}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3, "gather_16bit_weights_on_model_save": true}}
            """,
        ),
    ),
)
