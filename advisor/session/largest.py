"""The largest value of a key with which a run fits: as written, and with steps."""

from advisor.engine.max_value import MaxValue, check_key, max_value, max_value_planned
from advisor.engine.options import Options, planner
from advisor.errors import InputError
from advisor.opening import LoadedRun
from advisor.progress import doing, shown
from advisor.record import record

TAKE_BACK = {
    "sequence_len": ("shorter-sequences",),
    "micro_batch_size": ("smaller-micro-batch", "shorter-sequences"),
}
"""Steps that would answer another question."""


@record(eq=False)
class Largest:
    """The largest value of a key for one run."""

    key: str
    opened: LoadedRun
    as_written: MaxValue
    planned: MaxValue

    @property
    def positions(self) -> int | None:
        """How many the model has, where the key is about them."""
        model = self.opened.run.model
        return model.max_position_embeddings if model is not None and self.key == "sequence_len" else None


def largest(key: str, opened: LoadedRun, options: Options) -> Largest:
    """As written, and with steps: of the same training, and where these do not help of another.

    ``InputError`` for another key, and where there is no estimate.
    """
    check_key(key)
    run = opened.run
    if run.model is None or run.unreadable:
        what = "its model is unknown" if run.model is None else f"`{run.unreadable[0].key}` cannot be read"
        raise InputError(f"has no estimate: {what}", run.config.file, remedy="see `advisor check`")
    plan = planner(options.without(TAKE_BACK[key]))
    with shown(), doing(f"looking for the largest {key}"):
        same = max_value_planned(opened, key, lambda run: plan(run, True))
        found = same if same.value is not None else max_value_planned(opened, key, lambda run: plan(run, False))
        return Largest(key, opened, max_value(opened, key), found)
