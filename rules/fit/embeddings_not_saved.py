"""Leave the embedding and the head frozen next to an adapter."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.memory.weights import weights_of
from advisor.util import is_mapping

NEW_TOKENS = ("tokens", "added_tokens_overrides")
KEPT = "pad_token"
"""A special token that axolotl lets an adapter change: axolotl/loaders/tokenizer.py:228-250@0.19.0."""


def applies(run: Run) -> bool:
    """Whether whole copies of them are trained, and no new token needs them."""
    if run.lora is None or any(run.config.get(key) for key in NEW_TOKENS):
        return False
    special = run.config.get("special_tokens")
    changed = [key for key in special if key != KEPT] if is_mapping(special) else []
    return not changed and kept_modules(run) != list(run.lora.modules_to_save)


def edits(run: Run) -> RunEdits:
    """What else is saved stays."""
    return {"lora_modules_to_save": kept_modules(run)}


def kept_modules(run: Run) -> list[str]:
    """The modules that are trained whole, but for the embedding and the head."""
    saved = run.lora.modules_to_save if run.lora is not None else ()
    frozen = run.model.vocabulary_modules if run.model is not None else frozenset[str]()
    return [name for name in saved if name not in frozen]


def label(before: Run, after: Run) -> str:
    """How many parameters are trained, before and after."""
    counts = (weights_of(run, run.model).trained_elements / 1e6 for run in (before, after) if run.model is not None)
    return f"embeddings frozen: {' -> '.join(f'{count:,.0f}' for count in counts)} M trained"


rule = Rule(
    id="embeddings-not-saved",
    stage="fit",
    title="Leave the embedding and the head frozen",
    label=label,
    when=applies,
    edits=edits,
    why="""
        What `lora_modules_to_save` names is trained as a whole copy: weights, gradients and optimizer states of each
        token's row, often many times the adapter. Only new tokens need it, and this config adds none.
    """,
    cost="The rows of all tokens stay as they are; the adapter alone learns.",
    because="Whole copies of both are trained, which only new tokens need.",
    price="The rows of all tokens stay as they are; the adapter alone learns.",
    safe=False,
    source="peft/utils/other.py:591-660@0.20.0; axolotl/loaders/adapter.py:187-200@0.19.0",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_modules_to_save: [embed_tokens, lm_head]
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="24.8 -> 18.9 GiB",
        ),
        but("lora_modules_to_save: [embed_tokens, norm]", fires=True),
        but('tokens: ["<|im_start|>"]'),
        but("added_tokens_overrides: {128041: '<|im_start|>'}"),
        but('special_tokens: {eos_token: "<|im_end|>"}'),
        but('special_tokens: {pad_token: "<|end_of_text|>"}', fires=True),
        but("lora_modules_to_save: [norm]"),
        but("base_model: nobody/knows-this"),
        only("base_model: meta-llama/Llama-3.1-8B", "lora_modules_to_save: [embed_tokens]"),
    ),
)
