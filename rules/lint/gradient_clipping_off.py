"""A DeepSpeed JSON that switches gradient clipping off."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, json_hit


def finds(run: Run) -> Iterator[Hit]:
    """Where the JSON does not mention clipping, and the trainer would have clipped."""
    section = run.deepspeed
    if run.zero is None or section is None or section.get("gradient_clipping") is not None:
        return
    norm = run.config.get("max_grad_norm")
    if norm is not None and not (isinstance(norm, (int, float)) and norm > 0):
        return
    asked = "the default `max_grad_norm` of 1.0" if norm is None else f"`max_grad_norm: {norm}`"
    message = f"without `gradient_clipping` in its JSON DeepSpeed clips nothing, and {asked} is lost; set it to `auto`"
    yield json_hit(run, "", message, Set("gradient_clipping", "auto"))


rule = Rule(
    id="gradient-clipping-off",
    stage="lint",
    title="A DeepSpeed JSON that switches gradient clipping off",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Under DeepSpeed the engine clips gradients, not the trainer: accelerate only reads their norm from it. It is
        transformers that fills `gradient_clipping` in, where it says "auto" and nowhere else; DeepSpeed's own default
        is 0.0, which means never. Without DeepSpeed the same YAML clips.
    """,
    safe=False,
    source=(
        "deepspeed/runtime/config.py:233-234, runtime/constants.py:253-254@0.18.9; "
        "accelerate/accelerator.py:2970-2974@1.13.0; "
        "transformers/integrations/deepspeed.py:105-131,158@5.16.1"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                max_grad_norm: 0.5
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "gradient_clipping": "auto"
                }
            """,
        ),
        but("deepspeed: deepspeed_configs/zero1.json", deepspeed=""),
        but("fsdp:\n  - full_shard\n  - auto_wrap", without=("max_grad_norm",), gpus="1x a100-80gb", deepspeed="{}"),
        but(without=("max_grad_norm",), deepspeed='{"zero_optimization": {"stage": 2}}', fires=True),
    ),
)
