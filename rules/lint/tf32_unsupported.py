"""TF32 on a card that has none."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only


def finds(run: Run) -> Iterator[Hit]:
    """NVIDIA's cards before Ampere, and AMD's."""
    hardware = run.hardware
    if hardware is None or run.config.get("tf32") is not True:
        return
    if not hardware.gpu.tf32:
        message = f"`tf32: true` on a {hardware.gpu.title}, which has no TF32: the trainer's arguments raise an error"
        yield Hit("tf32", f"{message}; set it to `false`", (Set("tf32", False),))


rule = Rule(
    id="tf32-unsupported",
    stage="lint",
    title="TF32 on a card that has none",
    finds=finds,
    level="error",
    proof="read",
    why="""
        axolotl hands `tf32: true` to transformers' training arguments, which stop where torch sees no CUDA card of
        compute capability 8.0 or more: "--tf32 requires Ampere". That is once the model is loaded. `auto` asks.
    """,
    cost="None: the card cannot do it.",
    safe=True,
    source=(
        "transformers/training_args.py:1638-1643@5.16.1; transformers/utils/import_utils.py:690-707@5.16.1; "
        "axolotl/core/builders/base.py:272, utils/schemas/config.py:1839-1841@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="1x t4",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fp16: true
                tf32: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fp16: true
                tf32: false
            """,
        ),
        but(gpus="1x mi300x", fires=True),
        but(gpus="1x a100-40gb"),
        but(gpus=""),
        but("tf32: auto"),
        but("tf32: false"),
        only("base_model: Qwen/Qwen2.5-1.5B"),
    ),
)
