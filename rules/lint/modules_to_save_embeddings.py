"""Whole embeddings trained along with an adapter."""

from collections.abc import Iterator

from advisor import GIB, Hit, Rule, Run, but, gib, only, without
from advisor.memory import estimate
from advisor.record import replace

KEY = "lora_modules_to_save"
LEAST = GIB


def finds(run: Run) -> Iterator[Hit]:
    """Where they cost a gibibyte or more; silent where the config itself adds or renames tokens."""
    if (
        run.lora is None
        or run.model is None
        or any(run.config.get(key) for key in ("tokens", "added_tokens_overrides"))
    ):
        return
    named = [name for name in run.lora.modules_to_save if name in run.model.vocabulary_modules]
    if not named:
        return
    rest = tuple(name for name in run.lora.modules_to_save if name not in named)
    now, without = estimate(run), estimate(replace(run, lora=replace(run.lora, modules_to_save=rest)))
    cost = now.allocated_peak - without.allocated_peak if now is not None and without is not None else 0
    if cost >= LEAST:
        names = " and ".join(f"`{name}`" for name in named)
        why = "needed for new tokens alone, whose rows `peft_trainable_token_indices` trains for less"
        yield Hit(KEY, f"`{KEY}` trains full copies of {names}: {gib(cost)} more at the peak; {why}")


rule = Rule(
    id="modules-to-save-embeddings",
    stage="lint",
    title="Whole embeddings are trained along with the adapter",
    finds=finds,
    level="note",
    proof="read",
    why="""
        PEFT keeps the frozen module and trains a full copy of it: weights, gradients and optimizer states for every
        token of the vocabulary, often many times the adapter. New tokens need their rows trained, nothing else does;
        PEFT can train single rows of the embedding instead.
    """,
    cost="Without them the embeddings stay as they are.",
    safe=False,
    source="peft/utils/other.py:591-660@0.20.0; axolotl/loaders/adapter.py:160-163,187-200@0.19.0",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "lora_modules_to_save: [embed_tokens, lm_head]",
            fires=True,
        ),
        but('tokens: ["<|im_start|>", "<|im_end|>"]'),
        without("lora_modules_to_save"),
        but("lora_modules_to_save:\n  - embed_tokens\n  - lm_head", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but(
            "lora_modules_to_save:\n  - embed_tokens\n  - lm_head",
            "deepspeed: zero.json",
            deepspeed='{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            fires=True,
        ),
        but("base_model: nobody/knows-this", "lora_modules_to_save:\n  - embed_tokens\n  - lm_head"),
        but("base_model: EleutherAI/pythia-1.4b", "lora_modules_to_save: [embed_in, dense_h_to_4h]"),
    ),
)
