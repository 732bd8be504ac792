"""A learning rate schedule that nobody has."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.schemas import nearest
from advisor.schemas.names import LR_SCHEDULERS as NAMES


def finds(run: Run) -> Iterator[Hit]:
    """A name that is neither transformers' nor axolotl's."""
    name = run.config.get("lr_scheduler")
    if not isinstance(name, str) or not name or name in NAMES or not run.stack.at_least("transformers", "5.0.0"):
        return
    meant = nearest(name.lower(), NAMES)
    remedy = f"is `{meant}` meant?" if meant else "take one of theirs, such as `cosine`"
    yield Hit(
        "lr_scheduler",
        f"`lr_scheduler: {name}` is none that axolotl or transformers can build: the run stops once the model is"
        f" loaded; {remedy}",
    )


rule = Rule(
    id="unknown-lr-scheduler",
    stage="lint",
    title="A learning rate schedule that nobody has",
    finds=finds,
    level="error",
    proof="read",
    of_names=True,
    fatal=True,
    why="""
        axolotl takes any string for `lr_scheduler` and builds `one_cycle` and `rex` itself; every other one is
        looked up in transformers' list when the training arguments are built: after the download, and after the model
        has been loaded.
    """,
    source="axolotl/core/builders/base.py:280-287@0.19.0; transformers/training_args.py:1523@5.16.1;"
    " transformers/utils/generic.py:573-576@5.16.1",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "lr_scheduler: cosin", fires=True),
        but("lr_scheduler: sawtooth", fires=True),
        but("lr_scheduler: rex"),
        but('lr_scheduler: ""'),
        but("lr_scheduler: 3"),
        but("lr_scheduler: sawtooth", stack={"transformers": "4.57.0"}),
    ),
)
