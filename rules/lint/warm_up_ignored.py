"""A warm-up under a schedule that has none."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, only, without

KEYS = ("warmup_steps", "warmup_ratio")
INSTEAD = "constant_with_warmup"


def finds(run: Run) -> Iterator[Hit]:
    """The plain constant schedule next to a warm-up that somebody wrote."""
    if run.config.get("lr_scheduler") != "constant":
        return
    key = next((key for key in KEYS if run.config.get(key)), None)
    if key is not None:
        message = f"`lr_scheduler: constant` has no warm-up, so `{key}` does nothing; write `{INSTEAD}`"
        yield Hit(key, message, (Set("lr_scheduler", INSTEAD),), on_key=True)


rule = Rule(
    id="warm-up-ignored",
    stage="lint",
    title="A warm-up under a schedule that has none",
    finds=finds,
    level="note",
    proof="read",
    safe=False,
    why="""
        transformers builds `constant` without the steps of a warm-up: the first step has the whole rate, at which
        Adam's averages are still empty.
    """,
    cost="The first steps are smaller.",
    source="transformers/optimization.py:1014-1015@5.16.1",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "lr_scheduler: constant", "warmup_steps: 10", fires=True),
        but("warmup_ratio: 0.1", without=("warmup_steps",), fires=True),
        but("lr_scheduler: constant_with_warmup"),
        but("warmup_steps: 0"),
        without("lr_scheduler"),
    ),
)
