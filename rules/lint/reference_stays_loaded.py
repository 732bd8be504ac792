"""Log-probabilities of DPO's reference are worked out beforehand, and the reference stays on the GPU."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but
from advisor.run.axolotl.preference import BY_DPO

KEY = "precompute_ref_log_probs"


def finds(run: Run) -> Iterator[Hit]:
    """A full fine-tune, whose reference is a model of its own."""
    if run.rl in BY_DPO and run.is_on(KEY) and run.reference_model:
        kept = "a whole second model, which ZeRO-3 and FSDP alone shard"
        yield Hit(KEY, f"`{KEY}: true` saves the reference's forwards, not its memory: axolotl loads it, {kept}")


rule = Rule(
    id="reference-stays-loaded",
    stage="lint",
    title="The reference model stays loaded",
    finds=finds,
    level="note",
    proof="read",
    why="""
        TRL drops the reference of a full fine-tune only where it was given none. axolotl gives it one, so it is on the
        GPU from the start to the end. Adapters need no second model: the base without them is the reference.
    """,
    source="axolotl/train.py:127-165@0.19.0; trl/trainer/dpo_trainer.py:893-936@1.9.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-3B-Instruct
                rl: dpo
                precompute_ref_log_probs: true
            """,
            fires=True,
        ),
        but("precompute_ref_log_probs: false"),
        but("rl: kto"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"),
    ),
)
