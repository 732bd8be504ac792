"""A run whose evaluation alone does not fit."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, gib, only
from advisor.memory import estimate

SWITCHES = ("eval_batch_size", "eval_sequence_len", "evals_per_epoch", "eval_steps", "eval_strategy", "val_set_size")

APART = "`test_datasets` with `eval_sequence_len`, neither packed nor padded"


def finds(run: Run) -> Iterator[Hit]:
    """Where the run does not fit, and every phase but evaluation would."""
    found = estimate(run)
    if found is None or found.on_gpu != "does-not-fit":
        return
    training = found.needed_in_training
    if training <= found.usable:
        at = next((key for key in SWITCHES if run.config.has(key)), "")
        message = (
            f"only evaluation does not fit: training needs {gib(training)}, {run.eval_batch_size} rows of "
            f"{run.eval_sequence_len} tokens {gib(found.needed.low)}; {remedy(run)}"
        )
        yield Hit(at, message)


def remedy(run: Run) -> str:
    """What makes evaluation smaller."""
    if run.eval_batch_size > 1:
        bins = run.packs_evaluation
        return "write `eval_sample_packing: false` and `eval_batch_size: 1`" if bins else "lower `eval_batch_size`"
    if run.cuts_evaluation:
        return "set a shorter `eval_sequence_len`, or do without evaluation"
    if cut_helps(run):
        return "use `cut_cross_entropy`, which makes no logits there, or do without evaluation"
    return f"do without evaluation, or evaluate shorter rows: {APART}"


def cut_helps(run: Run) -> bool:
    """Whether cut cross-entropy knows the model, and another loss makes logits in evaluation."""
    known = run.model is not None and run.model.family.cut
    return known and run.rl is None and run.classifier is None and run.loss in {"plain", "liger", "liger-fused"}


rule = Rule(
    id="eval-peak-exceeds-gpu",
    stage="lint",
    title="A run whose evaluation alone does not fit",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Evaluation needs the logits of whole rows, also where Liger's fused loss never makes them in training; cut
        cross-entropy makes them in neither. axolotl evaluates once before the first step, and most remedies for
        training do nothing for it.
    """,
    safe=False,
    source=(
        "advisor/memory/forward.py; axolotl/core/builders/base.py:523-533@0.19.0; "
        "https://github.com/axolotl-ai-cloud/axolotl/issues/1813"
    ),
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 4096
                micro_batch_size: 1
                eval_batch_size: 8
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
            fires=True,
        ),
        but("sequence_len: 32768", without=("val_set_size", "evals_per_epoch")),
        but(
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", gpus=""),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "eval_batch_size: 8",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            gpus="1x rtx-4090",
        ),
    ),
)
