"""ZeRO-3 that builds its shards in fp32."""

from collections.abc import Iterator

from advisor import GIB, Example, Hit, Rule, Run, Set, but, gib, is_mapping, json_hit, only
from advisor.memory import estimate
from advisor.run.deepspeed.shipped import SHIPPED

WITH_AUTO, WITH_BF16 = "zero3.json", "zero3_bf16.json"


def finds(run: Run) -> Iterator[Hit]:
    """Where the dtype is not said outright in the JSON, from a gibibyte on; a quantized base is loaded another way."""
    section = run.deepspeed
    if section is None or run.zero is None or not run.zero.loads_fp32 or run.precision == "fp32" or run.quantization:
        return
    if run.model is not None and 4 * run.model.parameters // run.shard_size < GIB:
        return
    key = f"{run.precision}.enabled"
    given = section.at(key)
    said = f'`{key}: "{given}"` is not filled in yet' if given is not None else f"`{key}` is missing"
    message = f"{said} when ZeRO-3 loads: the shards are built in fp32{size(run)}; write `true`"
    found = estimate(run)
    level = "warning" if found is not None and found.peak_phase == "load" else None
    named = run.deepspeed_named or ""
    if run.precision == "bf16" and named.endswith(WITH_AUTO) and dict(section) == SHIPPED[WITH_AUTO]:
        instead = Set("deepspeed", named.removesuffix(WITH_AUTO) + WITH_BF16)
        yield Hit("deepspeed", f"{message}, as in `{WITH_BF16}`", (instead,), level=level)
        return
    at = key if given is not None else "zero_optimization.stage"
    edits = (Set(key, True),) if is_mapping(section.get(run.precision, {})) else ()
    yield json_hit(run, at, message, *edits, level=level)


def size(run: Run) -> str:
    """What that takes on each GPU, where the model is known."""
    if run.model is None:
        return ""
    elements = run.model.parameters // run.shard_size
    return f", {gib(4 * elements)} on each GPU instead of {gib(2 * elements)}, and cast afterwards"


rule = Rule(
    id="zero3-loads-fp32",
    stage="lint",
    title="ZeRO-3 that builds its shards in fp32",
    finds=finds,
    level="note",
    proof="read",
    why="""
        ZeRO-3 shards the model while it is being loaded, and reads the dtype from the JSON. The trainer has not filled
        in "auto" by then; DeepSpeed drops it and falls back to fp32. The engine casts the shards later: nothing else
        changes, but loading takes twice the memory and the traffic.
    """,
    safe=True,
    source=(
        "deepspeed/runtime/zero/partition_parameters.py:383-396@0.18.9; "
        "deepspeed/runtime/config_utils.py:54-57@0.18.9; transformers/modeling_utils.py:3799-3811@5.16.1; https://github.com/axolotl-ai-cloud/axolotl/pull/1466"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                bf16: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 3},
                  "bf16": {"enabled": "auto"},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 3},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                bf16: auto
                deepspeed: deepspeed_configs/zero3.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-32B
                bf16: auto
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
        ),
        but(fixed=True),
        but("deepspeed: deepspeed_configs/zero1.json"),
        but(
            "bf16: false", "deepspeed: zero.json", gpus="1x a100-80gb", deepspeed='{"zero_optimization": {"stage": 3}}'
        ),
        only(
            "base_model: Qwen/Qwen2.5-32B",
            "deepspeed: zero.json",
            "fsdp:\n  - full_shard\n  - auto_wrap",
            deepspeed="{}",
        ),
        only(
            "base_model: nobody/knows-this",
            "deepspeed: zero.json",
            deepspeed='{"zero_optimization": {"stage": 3}}',
            fires=True,
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_4bit: true",
            "deepspeed: deepspeed_configs/zero3.json",
            gpus="8x a100-80gb",
            deepspeed="",
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                deepspeed: own_zero3.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                deepspeed: ds.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "overlap_comm": true,
                    "contiguous_gradients": true,
                    "sub_group_size": 0,
                    "reduce_bucket_size": "auto",
                    "stage3_prefetch_bucket_size": "auto",
                    "stage3_param_persistence_threshold": "auto",
                    "max_live_parameters": 0,
                    "max_reuse_distance": 0,
                    "gather_16bit_weights_on_model_save": true
                  },
                  "bf16": {
                    "enabled": "auto"
                  },
                  "fp16": {
                    "enabled": "auto",
                    "auto_cast": false,
                    "loss_scale": 0,
                    "initial_scale_power": 32,
                    "loss_scale_window": 1000,
                    "hysteresis": 2,
                    "min_loss_scale": 1
                  },
                  "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto",
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "wall_clock_breakdown": false
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "overlap_comm": true,
                    "contiguous_gradients": true,
                    "sub_group_size": 0,
                    "reduce_bucket_size": "auto",
                    "stage3_prefetch_bucket_size": "auto",
                    "stage3_param_persistence_threshold": "auto",
                    "max_live_parameters": 0,
                    "max_reuse_distance": 0,
                    "gather_16bit_weights_on_model_save": true
                  },
                  "bf16": {
                    "enabled": true
                  },
                  "fp16": {
                    "enabled": "auto",
                    "auto_cast": false,
                    "loss_scale": 0,
                    "initial_scale_power": 32,
                    "loss_scale_window": 1000,
                    "hysteresis": 2,
                    "min_loss_scale": 1
                  },
                  "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto",
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "wall_clock_breakdown": false
                }
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                fp16: true
                deepspeed: copy_of_zero3.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "overlap_comm": true,
                    "contiguous_gradients": true,
                    "sub_group_size": 0,
                    "reduce_bucket_size": "auto",
                    "stage3_prefetch_bucket_size": "auto",
                    "stage3_param_persistence_threshold": "auto",
                    "max_live_parameters": 0,
                    "max_reuse_distance": 0,
                    "gather_16bit_weights_on_model_save": true
                  },
                  "bf16": {
                    "enabled": "auto"
                  },
                  "fp16": {
                    "enabled": "auto",
                    "auto_cast": false,
                    "loss_scale": 0,
                    "initial_scale_power": 32,
                    "loss_scale_window": 1000,
                    "hysteresis": 2,
                    "min_loss_scale": 1
                  },
                  "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto",
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "wall_clock_breakdown": false
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "overlap_comm": true,
                    "contiguous_gradients": true,
                    "sub_group_size": 0,
                    "reduce_bucket_size": "auto",
                    "stage3_prefetch_bucket_size": "auto",
                    "stage3_param_persistence_threshold": "auto",
                    "max_live_parameters": 0,
                    "max_reuse_distance": 0,
                    "gather_16bit_weights_on_model_save": true
                  },
                  "bf16": {
                    "enabled": "auto"
                  },
                  "fp16": {
                    "enabled": true,
                    "auto_cast": false,
                    "loss_scale": 0,
                    "initial_scale_power": 32,
                    "loss_scale_window": 1000,
                    "hysteresis": 2,
                    "min_loss_scale": 1
                  },
                  "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto",
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "wall_clock_breakdown": false
                }
            """,
        ),
    ),
)
