"""Padding up to the full length, which takes the time of full rows."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only
from advisor.run.axolotl.attention import may_pack

KEY = "pad_to_sequence_len"


def finds(run: Run) -> Iterator[Hit]:
    """Rows of axolotl's own trainers that are not packed, where nothing else wants one shape throughout."""
    one_shape = run.torch_compile or run.context_parallel_size > 1 or run.attention == "sage"
    pretrains = run.config.get("pretraining_dataset")
    if not run.pads_to_sequence_len or run.sample_packing or run.rl is not None or one_shape or pretrains:
        return
    by_default = run.config.get(KEY) is None
    subject = f"`reward_model` sets `{KEY}: true`" if by_default else f"`{KEY}: true` without packing"
    remedy = "`sample_packing: true` fills them, `false` here shortens them" if may_pack(run) else "set it to `false`"
    message = (
        f"{subject}: a row of any length takes the time of {run.sequence_len:,} tokens; unless most rows are that long,"
        f" {remedy}"
    )
    yield Hit("reward_model" if by_default else KEY, message, edits=(Set(KEY, False),))


rule = Rule(
    id="pads-every-row",
    stage="lint",
    title="Every row is padded to the full length",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    safe=True,
    why="""
        The collator pads each batch to a multiple of `sequence_len`, that is to all of it. Padding has no loss, but
        attention, MLP and logits are computed all the same. Without the key a batch is as long as its longest row, and
        memory never grows above what it is now. For a reward model axolotl sets the key where it is not written.
    """,
    cost="Batches of many shapes: a kernel that compiles for a shape does so more often.",
    source="axolotl/core/builders/causal.py:386-394, utils/schemas/validation.py:248-256@0.19.0",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 8192
                reward_model: true
                pad_to_sequence_len: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 8192
                reward_model: true
                pad_to_sequence_len: false
            """,
        ),
        but(without=("pad_to_sequence_len",), fires=True),
        but("pad_to_sequence_len: false"),
        but("process_reward_model: true", without=("reward_model", "pad_to_sequence_len")),
        but(without=("reward_model",), fires=True),
        but("sample_packing: true", without=("reward_model",)),
        but("rl: dpo", without=("reward_model",)),
        but("torch_compile: true"),
        but("context_parallel_size: 2", gpus="2x a100-80gb"),
        but("attn_implementation: sage"),
        but("pretraining_dataset: a/b", without=("reward_model",)),
        only("base_model: Qwen/Qwen2.5-7B", "pad_to_sequence_len: false"),
    ),
)
