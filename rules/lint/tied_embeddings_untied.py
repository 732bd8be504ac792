"""A tied model whose embedding and head are trained as two, which axolotl's merge takes apart."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, without
from advisor.run.axolotl.checkpointing import TIED_BY_PEFT, must_tie

KEY = "lora_modules_to_save"
TYING = "peft_ensure_weight_tying"


def finds(run: Run) -> Iterator[Hit]:
    """Where the embedding or the head of a tied model is saved and PEFT is not told to keep them tied."""
    if run.lora is None or run.lora.ensure_tying or not must_tie(run):
        return
    named = [name for name in run.lora.modules_to_save if name.rpartition(".")[2] in TIED_BY_PEFT]
    if named:
        names = " and ".join(f"`{name}`" for name in named)
        message = (
            f"the model is tied, and {names} trained as copies of their own: axolotl's merge writes one table without"
            f" a word, and the merged model has another loss than was trained; write `{TYING}: true`"
        )
        yield Hit(KEY, message, (Set(TYING, True, after=KEY),), on_key=True)


rule = Rule(
    id="tied-embeddings-untied",
    stage="lint",
    title="Embedding and head of a tied model are trained as two",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        A tied checkpoint holds the embedding alone. axolotl's default merge goes through its shards, so a trained
        `lm_head` finds no place and is dropped, and a trained `embed_tokens` becomes the head too: a tiny Qwen3 trained
        to a loss of 0.005 was at chance after the merge, 4.2. With the key PEFT trains one copy for both, and the merge
        keeps it; `merge_method: legacy` keeps both without it.
    """,
    cost="One table is trained instead of two, which also frees the memory of one copy.",
    safe=False,
    source="axolotl/cli/utils/lora_merge.py:2236-2252@0.19.0; peft/tuners/tuners_utils.py:1354-1357@0.20.0;"
    " axolotl/loaders/adapter.py:161-162@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-1B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_modules_to_save: [embed_tokens, lm_head]
            """,
            after="""
                base_model: meta-llama/Llama-3.2-1B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_modules_to_save: [embed_tokens, lm_head]
                peft_ensure_weight_tying: true
            """,
        ),
        but(fixed=True),
        but("lora_modules_to_save: [lm_head]", "merge_method: legacy"),
        but("base_model: meta-llama/Llama-3.1-8B"),
        but("lora_modules_to_save: [norm]"),
        without("adapter", "lora_r", "lora_alpha", "lora_target_linear"),
    ),
)
