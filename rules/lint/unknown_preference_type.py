"""A dataset's ``type`` that axolotl has not for this kind of preference training."""

from collections.abc import Iterator, Mapping

from advisor import Hit, Rule, Run, but, only
from advisor.schemas import nearest
from advisor.schemas.entries import entries_of
from advisor.schemas.names import DATASET_STRATEGIES, PREFERENCE_STRATEGIES

Strategies = Mapping[str, tuple[str, ...]]
OF_ANY = frozenset(DATASET_STRATEGIES).union(*PREFERENCE_STRATEGIES.values())
"""Modules that axolotl has for some training; any other may be a module of somebody's own."""


def finds(run: Run) -> Iterator[Hit]:
    """Each type that names a module of axolotl, or one that the module does not have."""
    known = PREFERENCE_STRATEGIES.get(str(run.config.get("rl")), {})
    for key in ("datasets", "test_datasets") if known else ():
        for at, item in entries_of(run.config, key):
            kind = item.get("type")
            if isinstance(kind, str) and is_missing(kind, known):
                yield Hit(f"{at}.type", message(kind, str(run.config.get("rl")), known))


def is_missing(kind: str, known: Strategies) -> bool:
    """Whether a module of axolotl is named that is another training's, or lacks the function."""
    module, _, function = kind.partition(".")
    return module in OF_ANY and (function or "default") not in known.get(module, ())


def message(kind: str, training: str, known: Strategies) -> str:
    """What is there instead."""
    meant = nearest(kind, (f"{module}.{name}" for module, names in known.items() for name in names))
    remedy = f"is `{meant}` meant?" if meant else f"it has {', '.join(f'`{module}`' for module in known)}"
    return f"`type: {kind}` is no way of reading rows for `rl: {training}`: axolotl stops at the data; {remedy}"


rule = Rule(
    id="unknown-preference-type",
    stage="lint",
    title="A dataset's type that this preference training does not have",
    finds=finds,
    level="error",
    proof="read",
    of_names=True,
    why="""
        axolotl's schema takes any text. DPO, IPO and SimPO share their ways of reading rows; KTO and ORPO have their
        own. A type is a module and a function in it; one without a dot is the function `default`. What is not there
        ends in "Failed to load dataset transform function".
    """,
    source="axolotl/utils/data/rl.py:317-337@0.19.0; axolotl/prompt_strategies/base.py:12-34@0.19.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "rl: kto",
            "remove_unused_columns: false",
            "datasets:\n  - path: someone/rated\n    type: chat_template.argilla",
            gpus="",
            fires=True,
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "rl: dpo",
            "datasets:\n  - path: someone/pairs\n    type: completion",
            fires=True,
        ),
        but("datasets:\n  - path: someone/pairs\n    type: chatml.intel_prefilled", fires=True),
        but("test_datasets:\n  - path: someone/pairs\n    type: orpo.argilla", "datasets: someone/pairs", fires=True),
        but("rl: orpo", "datasets:\n  - path: someone/pairs\n    type: chat_template", fires=True),
        but("""
                datasets:
                  - path: someone/a
                    type: chat_template
                  - path: someone/b
                    type: chatml.ultra
                  - path: someone/c
                    type: own_module.transform
                  - path: someone/d
                    type: own_module
                  - path: someone/e
                    type:
                      field_prompt: question
                  - path: someone/f
                    type: ""
                  - nothing
            """),
        but("rl: grpo", "datasets:\n  - path: someone/questions\n    type: chat_template.default"),
        only("base_model: Qwen/Qwen2.5-7B", "datasets:\n  - path: someone/chats\n    type: completion"),
    ),
)
