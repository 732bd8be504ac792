"""Unfrozen parameters that leave nothing to train of a run with an adapter."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only
from advisor.memory.freezing import freezes_all


def finds(run: Run) -> Iterator[Hit]:
    """Patterns that match none of the names that PEFT gives the parameters, those of the adapter among them."""
    if run.model is not None and freezes_all(run, run.model):
        yield Hit(
            "unfrozen_parameters",
            "`unfrozen_parameters` match no name under PEFT: axolotl silently freezes the adapter too, and nothing is"
            " trained; remove the key, and name what is to be trained as a whole in `lora_modules_to_save`",
            on_key=True,
            edits=(Remove("unfrozen_parameters"),),
        )


rule = Rule(
    id="adapter-frozen",
    stage="lint",
    title="Train the adapter that `unfrozen_parameters` freeze",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        axolotl applies the patterns once PEFT has wrapped the model, to every parameter: what none of them matches is
        frozen. Under PEFT all names begin with `base_model.model.`, so patterns that begin with `model.` match none of
        them, and the adapter itself is frozen. With gradient checkpointing the run goes through all its steps with
        weights that stay as they are; without, its first backward stops.
    """,
    safe=False,
    source="axolotl/train.py:85,109-111@0.19.0; axolotl/utils/freeze.py:74-81@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: google/gemma-3-1b-it
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                unfrozen_parameters:
                  - ^model.language_model.*
                  - ^lm_head.*
            """,
            after="""
                base_model: google/gemma-3-1b-it
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        but("unfrozen_parameters:\n  - .+lora_.+"),
        only("base_model: google/gemma-3-1b-it", "unfrozen_parameters:\n  - ^lm_head.*"),
        but(
            "base_model: nobody/knows-this",
            "adapter: lora",
            "unfrozen_parameters:\n  - ^lm_head.*",
            without=("load_in_4bit",),
        ),
    ),
)
