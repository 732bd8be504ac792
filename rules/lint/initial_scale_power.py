"""A loss scale that starts far too high."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, json_hit, only

KEY = "fp16.initial_scale_power"
DEFAULT = 16
HIGH = 20


def finds(run: Run) -> Iterator[Hit]:
    """Where a dynamic loss scale is in use, and its first value must overflow."""
    section = run.deepspeed
    power = section.at(KEY) if section is not None and scales_dynamically(run) else None
    if isinstance(power, int) and power > HIGH:
        message = (
            f"`initial_scale_power: {power}` starts fp16's loss scale at 2^{power}: up to {power - DEFAULT + 1} steps "
            f"are skipped until it has fallen to DeepSpeed's default 2^{DEFAULT}; set it to {DEFAULT}"
        )
        yield json_hit(run, KEY, message, Set(KEY, DEFAULT))


def scales_dynamically(run: Run) -> bool:
    """Whether DeepSpeed trains in fp16 and looks for the loss scale itself."""
    section = run.deepspeed
    if run.zero is None or section is None or run.precision != "fp16":
        return False
    trainers = bool(run.config.get("fp16")) or run.config.get("bf16", "auto") == "auto"
    enabled = section.at("fp16.enabled")
    return (enabled is True or (enabled == "auto" and trainers)) and section.at("fp16.loss_scale") in (None, 0, "auto")


rule = Rule(
    id="initial-scale-power",
    stage="lint",
    title="A loss scale that starts far too high",
    finds=finds,
    level="note",
    proof="read",
    why="""
        A step whose scaled gradients overflow fp16 is thrown away, and the scale is halved for the next one (the first
        overflow only uses up the hysteresis). The trainer counts the lost steps as done, and their rows as seen.
        axolotl's shipped files say 32; it matters on cards without bf16, where axolotl's `auto` means fp16.
    """,
    cost="",
    safe=False,
    source=(
        "deepspeed/runtime/fp16/loss_scaler.py:265-287, runtime/precision_config.py:133@0.18.9; "
        "transformers/trainer.py:1776-1789@5.16.1; axolotl deepspeed_configs/zero1.json@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="4x v100-32gb",
            before="""
                base_model: Qwen/Qwen2.5-3B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fp16: true
                bf16: false
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 1},
                  "fp16": {"enabled": "auto", "initial_scale_power": 32},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 1},
                  "fp16": {"enabled": "auto", "initial_scale_power": 16},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-3B", "bf16: auto", "deepspeed: deepspeed_configs/zero1.json", gpus="8x a100-80gb"
        ),
        only(
            "base_model: Qwen/Qwen2.5-3B",
            "fp16: true",
            "deepspeed: zero.json",
            deepspeed='{"fp16": {"initial_scale_power": 32}}',
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            deepspeed='{"zero_optimization": {"stage": 1}, "fp16": {"enabled": "auto", "initial_scale_power": 16}}',
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 1
                  },
                  "fp16": {
                    "enabled": "auto",
                    "initial_scale_power": 32,
                    "loss_scale": 128
                  }
                }
            """,
        ),
        Example(
            gpus="4x v100-32gb",
            stack={"torch": "2.3.0"},
            before="""
                base_model: Qwen/Qwen2.5-3B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 1}, "fp16": {"enabled": "auto", "initial_scale_power": 32}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 1}, "fp16": {"enabled": "auto", "initial_scale_power": 16}}
            """,
        ),
        but(
            "fp16: true",
            "bf16: false",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            deepspeed='{"fp16": {"enabled": true, "initial_scale_power": 32}}',
            stack={},
        ),
    ),
)
