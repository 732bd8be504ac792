"""A key takes memory that is not counted, so there is no verdict."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, gib, only
from advisor.memory import estimate


def finds(run: Run) -> Iterator[Hit]:
    """Where a key is on whose memory no formula says."""
    found = estimate(run)
    if found is None:
        return
    span = f"{gib(found.needed.low)} to {gib(found.needed.high)} of {gib(found.usable)}"
    so = "so there is no verdict" if found.verdict == "unknown" else "which does not change the verdict"
    for each in found.uncounted:
        yield Hit(each.key, f"{each} ({span}), {so}")


rule = Rule(
    id="memory-not-counted",
    stage="lint",
    title="A key takes memory that is not counted",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        The estimate follows the keys whose memory is known from axolotl's source, and knows those that have none. A few
        take or free memory by amounts that no formula here says. What is counted is still shown: the run needs at least
        that, or at most, as the message says. A short run under `max_steps: 3` measures the rest.
    """,
    safe=False,
    source="advisor/memory/uncounted.py",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.2-1B", "sequence_len: 2048", "use_onebitllms: true", fires=True),
        but("layer_offloading: false", "relora: true", without=("use_onebitllms",)),
        but(without=("sequence_len",), gpus=""),
    ),
)
