"""Packing for Granite 4's hybrids, whose patch asks transformers for a function that is gone."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, only

BROKEN = "5.16.1"
"""The transformers for which it was tried, which axolotl 0.19.0 pins."""


def finds(run: Run) -> Iterator[Hit]:
    """Packing, or rows that GPUs share: either has the family patched before the model is loaded."""
    if run.model is None or not run.model.family.packing_patch_broken or not run.stack.at_least("transformers", BROKEN):
        return
    key = "sample_packing" if run.sample_packing else "context_parallel_size" if run.context_parallel_size > 1 else ""
    if key:
        message = f"`{key}` stops axolotl before the model is loaded: its patch for this family asks for a function of"
        changes = (Set("sample_packing", False),) if key == "sample_packing" else ()
        yield Hit(key, f"{message} transformers that {BROKEN} no longer has; leave it out", changes)


rule = Rule(
    id="packing-patch-broken",
    stage="lint",
    title="Packing for a family whose patch no longer fits transformers",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    safe=False,
    why="""
        axolotl wraps `GraniteMoeHybridMambaLayer.cuda_kernels_forward` so that the state restarts with each sample. In
        the transformers that it pins, the class has no such function: AttributeError.
    """,
    cost="Short rows are padded, so a step holds fewer tokens.",
    source=(
        "axolotl/monkeypatch/models/granitemoehybrid/modeling.py:71@0.19.0, axolotl/loaders/patch_manager.py:535-537,"
        "565-570@0.19.0; transformers/models/granitemoehybrid/modeling_granitemoehybrid.py:494-640@5.16.1; tried"
    ),
    examples=lambda: (
        only(
            "base_model: ibm-granite/granite-4.0-h-tiny",
            "sample_packing: true",
            "attn_implementation: flash_attention_2",
            fires=True,
        ),
        but("sample_packing: false"),
        but("base_model: ibm-granite/granite-3.1-2b-base"),
        but("base_model: nobody/knows-this"),
        but(stack={"transformers": "4.57.0"}),
        but("sample_packing: false", "context_parallel_size: 2", gpus="2x a100-80gb", fires=True),
    ),
)
