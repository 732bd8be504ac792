"""Experts that axolotl cannot find under ZeRO-3."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.models import Architecture


def finds(run: Run) -> Iterator[Hit]:
    """Where a class is to be marked that the model does not have."""
    if run.zero_stage != 3 or run.model is None or run.stack.trainer != "axolotl":
        return
    missing = class_missing(run, run.model)
    if missing:
        yield Hit(
            "deepspeed",
            f"ZeRO-3 stops while loading: axolotl looks for the class `{missing}` in `{run.model.model_type}`, "
            f"which has none; use ZeRO-2 or FSDP2",
        )


def class_missing(run: Run, model: Architecture) -> str | None:
    """The class that axolotl fails to find; a model's own code may still have it."""
    family = model.family
    if family.absent_leaf and not run.config.get("trust_remote_code"):
        return family.absent_leaf if run.stack.at_least("transformers", "5.16.1") else None
    return None if model.by_kind.get("experts") else family.expert_leaf or None


rule = Rule(
    id="moe-leaf-modules",
    stage="lint",
    title="Experts that axolotl cannot find under ZeRO-3",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        Under ZeRO-3 axolotl marks a mixture's block as a leaf, so that all its experts are gathered at once: ranks that
        visit different experts would otherwise wait for each other forever. It does so by the class's name, for the
        model types that it knows, and DeepSpeed asserts that the class was found: deepseek_v2 and afmoe are spelled
        differently in transformers, and a Nemotron-H may have no experts. Model types that axolotl does not know are
        safe under transformers 5, where a layer's experts are one module.
    """,
    safe=False,
    source=(
        "axolotl/common/architectures.py:5-30, loaders/model.py:1101-1114@0.19.0; "
        "deepspeed/utils/z3_leaf_module.py:61-62@0.18.9; "
        "transformers/models/deepseek_v2/modeling_deepseek_v2.py:120, models/afmoe/modeling_afmoe.py:208@5.16.1"
    ),
    examples=lambda: (
        only(
            "base_model: deepseek-ai/DeepSeek-V2-Lite",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            gpus="8x a100-80gb",
            fires=True,
        ),
        but("base_model: nvidia/Nemotron-H-8B-Base-8K", fires=True),
        but("base_model: Qwen/Qwen3-30B-A3B"),
        but("base_model: nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
        but("base_model: nobody/knows-this", gpus="1x a100-80gb"),
        but("deepspeed: deepspeed_configs/zero1.json", gpus="1x a100-80gb"),
        but("trust_remote_code: true", gpus="1x a100-80gb"),
        but("base_model: nvidia/Nemotron-H-8B-Base-8K", gpus="1x a100-80gb", stack={"trainer": "trl-sft"}),
    ),
)
