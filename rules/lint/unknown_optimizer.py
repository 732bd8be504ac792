"""An optimizer that nobody has."""

import re
from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but
from advisor.memory.optimizers import OPTIMIZERS

LAYERWISE = (
    "galore_adamw_layerwise",
    "galore_adamw_8bit_layerwise",
    "galore_adafactor_layerwise",
    "apollo_adamw_layerwise",
)
NAMES = frozenset([*OPTIMIZERS, *LAYERWISE])
# In axolotl's enum, but nothing builds them; gone from transformers 5; and short for AdamW.
MEANT = {
    "ao_adamw_4bit": "adamw_torch_4bit",
    "ao_adamw_8bit": "adamw_torch_8bit",
    "adamw_apex_fused": "adamw_torch_fused",
    "adamw_hf": "adamw_torch",
    "adamw": "adamw_torch_fused",
}
# Optimizers that there are, and that neither transformers nor axolotl builds: another one is no correction of a slip.
OTHERS = frozenset(["adam", "adamax", "nadam", "radam", "lamb", "lars", "adadelta", "asgd", "rprop", "sophia", "sgdw"])


def finds(run: Run) -> Iterator[Hit]:
    """A name that is neither transformers' nor axolotl's."""
    name = run.config.get("optimizer")
    if not isinstance(name, str) or not name or name in NAMES or not run.stack.at_least("transformers", "5.0.0"):
        return
    another = not OTHERS.isdisjoint(re.split(r"[_\d]+", name.lower()))
    meant = None if another else MEANT.get(name.lower()) or nearest(name.lower())
    remedy = f"did you mean `{meant}`?" if meant else "take one of theirs, such as `adamw_torch`"
    yield Hit(
        "optimizer",
        f"`optimizer: {name}` is none that axolotl or transformers can build: the run stops once the model is loaded;"
        f" {remedy}",
        edits=(Set("optimizer", meant),) if meant else (),
    )


def nearest(name: str) -> str | None:
    """The name that was probably meant."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, sorted(NAMES), 1, 0.8)), None)


rule = Rule(
    id="unknown-optimizer",
    stage="lint",
    title="An optimizer that nobody has",
    finds=finds,
    level="error",
    proof="read",
    of_names=True,
    fatal=True,
    why="""
        axolotl takes any string for `optimizer` and hands it to transformers, which looks it up only when the training
        arguments are built: after the download, and after the model has been loaded.
    """,
    source="transformers/training_args.py:1524@5.16.1; transformers/utils/generic.py:573-576@5.16.1;"
    " axolotl/core/builders/base.py:449-452, 471-476@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bits
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bit
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                optimizer: ao_adamw_8bit
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                optimizer: adamw_torch_8bit
            """,
        ),
        but("optimizer: sophia", fires=True),
        but("optimizer: adam", fires=True),
        but("optimizer: galore_adamw_layerwise", "optim_target_modules: [attn, mlp]"),
        but("base_model: meta-llama/Llama-3.1-8B", "optimizer: ''"),
        but("base_model: meta-llama/Llama-3.1-8B", "optimizer: 3"),
        but("base_model: meta-llama/Llama-3.1-8B", "optimizer: adamw_hf", stack={"transformers": "4.57.0"}),
    ),
)
