"""DPO's fused loss with a reference that is worked out beforehand."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but
from advisor.run.axolotl.preference import BY_DPO

KEY = "precompute_ref_log_probs"


def finds(run: Run) -> Iterator[Hit]:
    """Both keys on."""
    if run.rl in BY_DPO and run.is_on(KEY) and run.is_on("dpo_use_liger_kernel"):
        message = f"`{KEY}: true` with `dpo_use_liger_kernel: true` stops the trainer once the model is loaded"
        yield Hit(KEY, f"{message}; remove it, as the fused loss saves more", (Remove(KEY),))


rule = Rule(
    id="dpo-liger-with-precomputed-reference",
    stage="lint",
    title="DPO's fused loss with a reference that is worked out beforehand",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        TRL's DPO trainer refuses the pair; axolotl's schema lets it pass. Of the two the fused loss saves more: it
        makes no logits, and axolotl loads the reference of a full fine-tune in either case.
    """,
    cost="The reference's forward in every micro-step.",
    safe=True,
    source="trl/trainer/dpo_trainer.py:803-807@1.9.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-3B-Instruct
                rl: dpo
                dpo_use_liger_kernel: true
                precompute_ref_log_probs: true
            """,
            after="""
                base_model: meta-llama/Llama-3.2-3B-Instruct
                rl: dpo
                dpo_use_liger_kernel: true
            """,
        ),
        but("dpo_use_liger_kernel: false"),
        but("precompute_ref_log_probs: false"),
        but("rl: kto"),
    ),
)
