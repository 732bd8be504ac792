"""New tokens with an adapter, whose embeddings are not trained."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, is_list, only
from advisor.models.family import UNKNOWN, families
from advisor.run.axolotl.checkpointing import must_tie

TYING = "peft_ensure_weight_tying"


def finds(run: Run) -> Iterator[Hit]:
    """Where an adapter's ``lora_modules_to_save`` lacks the embedding or the head, and ``tokens`` adds rows to both."""
    if not run.config.get("adapter") or not run.config.get("tokens"):
        return
    saved: list[object] = list(given) if is_list(given := run.config.get("lora_modules_to_save")) else []
    known = [run.model.family.embedding_modules] if run.model else every_pair()
    if any(set(names) <= set(map(str, saved)) for names in known):
        return
    names = " and ".join(f"`{name}`" for name in known[0])
    at = "lora_modules_to_save" if saved else "tokens"
    message = f"`tokens` adds rows that the adapter would leave untrained: axolotl stops; put {names} into"
    wanted = (*saved, *(name for name in known[0] if name not in saved))
    edits = (Set("lora_modules_to_save", list(wanted)),) if run.model else ()
    tied = must_tie(run) and not run.config.get(TYING)
    edits += (Set(TYING, True, after="lora_modules_to_save"),) if tied else ()
    rest = f", and write `{TYING}: true`, since the model is tied" if tied else ""
    yield Hit(at, f"{message} `lora_modules_to_save`{rest}", edits, on_key=True)


def every_pair() -> list[tuple[str, str]]:
    """What an unknown model's embedding and head may be called, the commonest first."""
    return list(dict.fromkeys(family.embedding_modules for family in (UNKNOWN, *families().values())))


rule = Rule(
    id="tokens-without-saved-embeddings",
    stage="lint",
    title="New tokens with an adapter, whose embeddings are not trained",
    finds=finds,
    level="error",
    proof="read",
    why="""
        New tokens get new rows in the embedding and in the head. An adapter freezes both, so axolotl insists that they
        are trained and saved in full, which costs memory: weights, gradients and optimizer states of both.
    """,
    safe=False,
    source="axolotl/loaders/utils.py:123-137@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_modules_to_save: [embed_tokens]
                tokens: ["<|im_start|>"]
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_modules_to_save: [embed_tokens, lm_head]
                tokens: ["<|im_start|>"]
            """,
        ),
        but(fixed=True),
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-1B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                tokens: ["<|im_start|>"]
            """,
            after="""
                base_model: meta-llama/Llama-3.2-1B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                tokens: ["<|im_start|>"]
                lora_modules_to_save:
                  - embed_tokens
                  - lm_head
                peft_ensure_weight_tying: true
            """,
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-1B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                peft_ensure_weight_tying: true
                lora_modules_to_save: [embed_tokens]
                tokens: ["<|im_start|>"]
            """,
            after="""
                base_model: meta-llama/Llama-3.2-1B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                peft_ensure_weight_tying: true
                lora_modules_to_save: [embed_tokens, lm_head]
                tokens: ["<|im_start|>"]
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "tokens:\n  - <|im_start|>"),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            without=("peft_ensure_weight_tying", "lora_modules_to_save", "tokens"),
        ),
    ),
)
