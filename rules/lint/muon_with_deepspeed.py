"""An optimizer that works on whole matrices, under DeepSpeed."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

REFUSED = frozenset(["muon", "polora", "q_galore_adamw8bit"])


def finds(run: Run) -> Iterator[Hit]:
    """Those that axolotl refuses."""
    name = run.config.get("optimizer")
    if not isinstance(name, str) or not run.config.get("deepspeed"):
        return
    if name in REFUSED or name.startswith("flash_"):
        yield Hit(
            "optimizer",
            f"`optimizer: {name}` is refused by axolotl with `deepspeed:`; shard with `fsdp_version: 2`, or take"
            " another optimizer",
        )


rule = Rule(
    id="muon-with-deepspeed",
    stage="lint",
    title="An optimizer that needs whole matrices, under DeepSpeed",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        ZeRO flattens all parameters into one vector and steps on slices of it. Muon and PoLoRA need whole matrices;
        Q-GaLore and the flash optimizers support DDP and FSDP2 alone. axolotl refuses them before anything is loaded.
    """,
    source="axolotl/utils/schemas/validation.py:930-936, 955-961, 1026-1030, 1057-1066@0.19.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "optimizer: muon",
            "deepspeed: deepspeed_configs/zero3.json",
            gpus="8x a100-80gb",
            fires=True,
        ),
        but("optimizer: flash_adamw", "deepspeed: deepspeed_configs/zero1.json", fires=True),
        but("fsdp_version: 2", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("deepspeed",)),
        but(without=("optimizer",), gpus="1x a100-80gb"),
        but("base_model: meta-llama/Llama-3.1-8B", "optimizer: null"),
    ),
)
