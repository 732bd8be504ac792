"""Keys for when to save, to evaluate and to warm up that exclude each other."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only, without

EVAL_KEYS = ("eval_steps", "eval_strategy", "evaluation_strategy")


def finds(run: Run) -> Iterator[Hit]:
    """Each pair that axolotl refuses."""
    if both(run, "warmup_steps", "warmup_ratio"):
        yield hit(run, "warmup_ratio", "warmup_steps", "keep one")
    elif run.config.get("rl") == "simpo" and run.config.get("warmup_ratio"):
        yield hit(run, "warmup_ratio", "rl", "write `warmup_steps`")
    yield from saves(run)
    yield from evaluations(run)


def saves(run: Run) -> Iterator[Hit]:
    """Two measures of how often; or steps for a strategy that does not count them."""
    if run.config.get("save_steps") and not_by_steps(run, "save_strategy"):
        yield hit(run, "save_steps", "save_strategy", "remove one, or write `save_strategy: steps`")
    if both(run, "save_steps", "saves_per_epoch"):
        yield hit(run, "saves_per_epoch", "save_steps", "keep one")


def evaluations(run: Run) -> Iterator[Hit]:
    """The same, and a schedule with nothing to evaluate on."""
    strategy = "eval_strategy" if run.config.get("eval_strategy") is not None else "evaluation_strategy"
    for often in ("eval_steps", "evals_per_epoch"):
        if run.config.get(often) and not_by_steps(run, strategy):
            yield hit(run, often, strategy, f"remove one, or write `{strategy}: steps`")
    if both(run, "eval_steps", "evals_per_epoch"):
        yield hit(run, "evals_per_epoch", "eval_steps", "keep one")
    named = [key for key in ("eval_steps", strategy) if run.config.get(key)]
    if named and nothing_to_evaluate_on(run) and run.config.get(strategy) != "no":
        gone = tuple(Remove(key) for key in EVAL_KEYS if run.config.has(key))
        yield Hit(
            named[0],
            f"`{named[0]}: {run.config.get(named[0])}` with `val_set_size: 0` is refused by axolotl: there is"
            " nothing to evaluate on; remove it, or set a share for `val_set_size`",
            gone,
        )


def both(run: Run, one: str, other: str) -> bool:
    """Whether both keys say something; zero and blank do not count."""
    return bool(run.config.get(one) and run.config.get(other))


def not_by_steps(run: Run, key: str) -> bool:
    """Whether a strategy is named that does not count steps."""
    value = run.config.get(key)
    return isinstance(value, str) and value not in ("", "steps")


def nothing_to_evaluate_on(run: Run) -> bool:
    """Whether no data is set aside, in so many words, and none is named."""
    return run.config.get("val_set_size") == 0 and not run.config.get("test_datasets")


def hit(run: Run, key: str, other: str, remedy: str) -> Hit:
    """One pair."""
    pair = f"`{key}: {run.config.get(key)}` with `{other}: {run.config.get(other)}`"
    return Hit(key, f"{pair}: axolotl stops, since one contradicts the other; {remedy}")


rule = Rule(
    id="schedule-keys-exclude-each-other",
    stage="lint",
    title="Keys for when to save, evaluate and warm up that exclude each other",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Set the interval once: in steps, in times per epoch, or by a strategy. axolotl refuses two answers, even if
        they agree, and SimPO's trainer knows no share for the warmup.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:297-319, 332-367, 487-498, 1722-1729@0.19.0",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "save_strategy: epoch", "save_steps: 500", fires=True),
        but("saves_per_epoch: 1", without=("save_strategy",), fires=True),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "val_set_size: 0.05",
            "evaluation_strategy: epoch",
            "eval_steps: 100",
            fires=True,
        ),
        but("evals_per_epoch: 4", without=("evaluation_strategy",), fires=True),
        but("evals_per_epoch: 4", "eval_strategy: epoch", without=("evaluation_strategy", "eval_steps"), fires=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                val_set_size: 0
                eval_strategy: steps
                eval_steps: 100
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                val_set_size: 0
            """,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "warmup_steps: 100", "warmup_ratio: 0.05", fires=True),
        but("rl: simpo", "rl_beta: 2.0", "warmup_ratio: 0.1", without=("warmup_steps",), fires=True),
        but(
            "val_set_size: 0.05",
            "warmup_steps: 0",
            "saves_per_epoch: 1",
            "save_strategy: epoch",
            "eval_strategy: steps",
            "eval_steps: 100",
        ),
        only("base_model: Qwen/Qwen2.5-7B", "val_set_size: 0", "evals_per_epoch: 1", 'eval_strategy: "no"', fires=True),
        without("evals_per_epoch"),
        only("base_model: Qwen/Qwen2.5-7B", "rl: simpo"),
        without("evals_per_epoch", "eval_strategy"),
        only("base_model: Qwen/Qwen2.5-7B", "save_steps: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "eval_steps: 10", "test_datasets:\n  - path: a"),
        but(
            """
                eval_steps: 100
                test_datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    split: train
            """,
            without=("evals_per_epoch", "eval_strategy"),
        ),
    ),
)
