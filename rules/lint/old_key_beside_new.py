"""A key under its old name and its new one."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only
from advisor.run.axolotl.attention import NAMES
from advisor.run.axolotl.read import LEGACY_ATTENTION
from advisor.schemas import axolotl_keys, listed_plugins

RENAMED = {
    "pretrain_multipack_buffer_size": "streaming_multipack_buffer_size",
    "noisy_embedding_alpha": "neftune_noise_alpha",
}
SWIGLU, GLU = "liger_swiglu", "liger_glu_activation"
ATTENTION = "attn_implementation"


def finds(run: Run) -> Iterator[Hit]:
    """Pairs of which axolotl wants one alone. Any value of Liger's counts, of the others one that is not false."""
    for old, new in RENAMED.items():
        if run.config.get(old) and run.config.get(new):
            yield hit(run, old, new, agrees=run.config.get(old) == run.config.get(new))
    if run.config.get(SWIGLU) is not None and run.config.get(GLU) is not None and has_liger(run):
        yield hit(run, SWIGLU, GLU, agrees=run.config.get(SWIGLU) == run.config.get(GLU))
    name = run.config.get(ATTENTION)
    for old, word in LEGACY_ATTENTION.items() if name else ():
        if run.config.get(old):
            yield hit(run, old, ATTENTION, agrees=NAMES.get(word, word) == name)


def has_liger(run: Run) -> bool:
    """Whether the plugin is there that the keys belong to."""
    return any(name.endswith("LigerPlugin") for name in listed_plugins(axolotl_keys(), run.config))


def hit(run: Run, old: str, new: str, *, agrees: bool) -> Hit:
    """The old key goes where both say the same; else somebody must say which one is meant."""
    remedy = "remove it" if agrees else "keep the one that is meant, under the new name"
    message = f"`{old}: {shown(run, old)}` with `{new}: {shown(run, new)}`: axolotl refuses the pair; {remedy}"
    return Hit(old, message, (Remove(old),) if agrees else (), on_key=True)


def shown(run: Run, key: str) -> str:
    """A value as YAML writes it."""
    value = run.config.get(key)
    return str(value).lower() if isinstance(value, bool) else str(value)


rule = Rule(
    id="old-key-beside-new",
    stage="lint",
    title="A key under its old name and its new one",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Alone, the old key is moved to the new one with a warning (`deprecated-key`). axolotl does not choose between
        the two: it stops, even if they agree.
    """,
    safe=True,
    source=(
        "axolotl/utils/schemas/config.py:1569-1574@0.19.0; axolotl/utils/schemas/validation.py:374-408@0.19.0; "
        "axolotl/integrations/liger/args.py:85-91@0.19.0"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                attn_implementation: flash_attention_2
                flash_attention: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                attn_implementation: flash_attention_2
            """,
        ),
        but("attn_implementation: sdpa", fires=True),
        but(
            "pretrain_multipack_buffer_size: 10000",
            "streaming_multipack_buffer_size: 5000",
            without=("attn_implementation", "flash_attention"),
            fires=True,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                noisy_embedding_alpha: 5
                neftune_noise_alpha: 5
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                neftune_noise_alpha: 5
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_swiglu: true
                liger_glu_activation: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_glu_activation: true
            """,
        ),
        but(
            "attn_implementation: sdpa",
            "flash_attention: false",
            "pretrain_multipack_buffer_size: 10000",
            without=("plugins", "liger_swiglu", "liger_glu_activation"),
        ),
        but(
            "evaluation_strategy: epoch",
            "eval_strategy: epoch",
            "val_set_size: 0.1",
            without=("plugins", "liger_swiglu", "liger_glu_activation"),
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "streaming_multipack_buffer_size: 2",
            "deepspeed: deepspeed_configs/zero3.json",
        ),
        but("base_model: meta-llama/Llama-3.1-8B", without=("sequence_len", "plugins")),
        but("base_model: meta-llama/Llama-3.1-8B", without=("sequence_len",), fixed=True),
        but("base_model: meta-llama/Llama-3.1-8B", without=("sequence_len", "liger_glu_activation")),
    ),
)
