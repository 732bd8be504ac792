"""The loss without the logits."""

from advisor import Example, Rule, Run, RunEdits, but, gib, only
from advisor.memory import estimate
from advisor.memory.liger_policy import skips_averaging
from advisor.record import replace

PACKAGE = (
    'pip install "cut-cross-entropy[transformers] @ '
    'git+https://github.com/axolotl-ai-cloud/ml-cross-entropy.git@4dfa522"'
)
"""axolotl's fork, as it says where the package is missing (integrations/cut_cross_entropy/__init__.py:31-34@0.19.0)."""


def edits(run: Run) -> list[RunEdits]:
    """Liger, which axolotl installs; then cut cross-entropy where that does more, and its package may be there."""
    assert run.model is not None
    liger = [{"loss": "liger-fused"}] if run.loss != "liger-fused" and knows_liger(run) else []
    return [*liger, *([{"loss": "cut"}] if cut_is_of_use(run) else [])]


def knows_liger(run: Run) -> bool:
    """Whether Liger has a fused loss for the model; TRL's DPO has its own, with errors of its own."""
    assert run.model is not None
    if run.rl is not None:
        return not run.model.family.shapes_logits and not skips_averaging(run)
    return "loss" in run.model.family.liger


def cut_is_of_use(run: Run) -> bool:
    """Whether cut cross-entropy knows the model: it keeps no gradients of the head, and makes no logits in evaluation.

    Of a run that has Liger's fused loss, whether it evaluates.
    """
    known = run.model is not None and run.model.family.cut and run.rl is None
    return known and run.stack.cut_cross_entropy is not False and (run.evaluates or run.loss != "liger-fused")


def applies(run: Run) -> bool:
    """Whether logits are made, in training or in evaluation, and a fused loss knows the model."""
    if run.model is None or run.loss not in {"plain", "liger", "liger-fused"} or run.tensor_parallel_size > 1:
        return False
    if run.classifier is not None or run.rl not in {None, "dpo"} or run.precision == "fp32":
        return False
    return bool(edits(run))


def label(before: Run, after: Run) -> str:
    """The loss that is written, and that it needs a package."""
    if requires(before, after):
        return "cut cross-entropy (needs a package)"
    return f"fused loss ({'Liger' if after.loss == 'liger-fused' else 'cut cross-entropy'})"


def because(before: Run, after: Run) -> str:
    """Of cut cross-entropy in place of Liger: that evaluation is the peak, and what the run needs without it."""
    chunks = "The logits are computed in chunks, not all at once."
    if after.loss != "cut" or not knows_liger(before):
        return chunks
    found = estimate(replace(before, loss="liger-fused"))
    if found is None or found.peak_phase != "evaluation":
        return chunks
    needed, training = gib(found.needed.high), gib(found.needed_in_training).split()[0]
    return f"With Liger evaluation makes the logits: {needed}, {training} in training."


def price(_before: Run, after: Run) -> str:
    """What it costs."""
    return "None in quality; its package must be installed." if after.loss == "cut" else "None in quality."


def requires(before: Run, after: Run) -> tuple[str, ...]:
    """Cut cross-entropy's package, unless it is installed."""
    return (PACKAGE,) if after.loss == "cut" and not before.stack.cut_cross_entropy else ()


rule = Rule(
    id="fused-loss",
    stage="fit",
    title="Compute the loss without materialising the logits",
    label=label,
    when=applies,
    edits=edits,
    why="""
        The plain loss holds 10 to 14 bytes for every token and every vocabulary entry, in fp32: with 128k entries
        and 8192 tokens that is 12 GiB or more. A fused loss computes them in chunks. Liger does so in training alone:
        evaluation makes the logits; cut cross-entropy makes them in neither. In DPO the plain loss holds 16 bytes
        under autocast and 8 under DeepSpeed, the fused one 10 to 12.
    """,
    cost="None in quality. Liger comes with axolotl; cut cross-entropy must be installed from axolotl's fork.",
    because=because,
    price=price,
    requires=requires,
    safe=True,
    source="https://arxiv.org/abs/2410.10989 (Liger); https://arxiv.org/abs/2411.09009 (cut cross-entropy)",
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
                sequence_len: 8192
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 8192
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            memory="19.7 -> 9.4 GiB",
        ),
        but(
            "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
            without=("micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "reward_model: true", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B", "process_reward_model: true", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B", "tensor_parallel_size: 2"),
        but(
            "bf16: false",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: nobody/knows-this"),
        but(
            "rl: kto",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: openai-community/gpt2"),
        only("base_model: CohereForAI/c4ai-command-r-v01", gpus="", fires=True),
        Example(gpus="", before="base_model: CohereForAI/c4ai-command-r-v01", stack={"cut_cross_entropy": False}),
        only("base_model: tiiuae/falcon-7b", "rl: dpo", gpus="", fires=True),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "rl: dpo",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "sequence_len: 4096",
            "micro_batch_size: 4",
            "gradient_checkpointing: true",
            gpus="1x a100-80gb",
            fires=True,
        ),
        but(gpus="2x a100-80gb"),
        but("base_model: google/gemma-2-2b-it"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_fused_linear_cross_entropy: true",
            gpus="",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_fused_linear_cross_entropy: true",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            gpus="",
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "tensor_parallel_size: 2", gpus=""),
    ),
)
