"""What a checkpoint takes on disk, and all that are kept.

transformers/trainer.py, _save_checkpoint@5.16.1: the weights, and the optimizer's states; with DeepSpeed its shards
with their master weights instead (deepspeed/runtime/engine.py, save_checkpoint@0.18.9).
"""

import math

from advisor.memory.optimizer_states import effective_optimizer, flat_state_width, state_bytes
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.record import record
from advisor.run import Run, Zero
from advisor.util import gib

KEPT = 4
"""Where ``save_total_limit`` is not set, or 0: axolotl/core/builders/base.py:519-521@0.19.0."""


@record
class Checkpoints:
    """Bytes of one checkpoint, and how many are kept: None where nothing limits them."""

    weights: int
    states: int
    kept: int | None
    written: int | None = None
    """How many the run writes, where its lengths say so."""
    by_default: bool = False

    @property
    def one(self) -> int:
        """Bytes of one."""
        return self.weights + self.states

    @property
    def least(self) -> int:
        """Bytes that must be free: those that are kept, and one that is written before the oldest goes."""
        most = None if self.kept is None else self.kept + 1
        count = min((n for n in (most, self.written) if n is not None), default=1)
        return count * self.one + self.weights

    @property
    def words(self) -> str:
        """``104.7 GiB on disk for each checkpoint (15.0 GiB weights, 89.7 GiB states); 3 are kept``."""
        parts = f" ({gib(self.weights)} weights, {gib(self.states)} states)" if self.states else ""
        kept = f"{self.kept} are kept" if self.kept is not None else "all are kept, for there is no `save_total_limit`"
        kept += " (axolotl's default)" if self.by_default else ""
        return f"{gib(self.one)} on disk for each checkpoint{parts}; {kept}"


def checkpoints(run: Run) -> Checkpoints | None:
    """The checkpoints of a run; None where the model is not known, or nothing is saved."""
    if run.model is None or run.unreadable or run.config.get("save_strategy") == "no":
        return None
    weights = weights_of(run, run.model)
    states = 0 if run.config.get("save_only_model") is True else states_of(run, weights)
    limit = run.config.get("save_total_limit")
    given = limit if isinstance(limit, int) and not isinstance(limit, bool) and limit else None
    by_default = given is None and run.stack.trainer == "axolotl"
    kept = KEPT if by_default else given if given is None or given > 0 else None
    return Checkpoints(_saved_weights(run, weights), states, kept, written(run), by_default)


def written(run: Run) -> int | None:
    """How many checkpoints a run writes, where steps or epochs say so: core/builders/base.py:508-517@0.19.0."""
    steps, every, per_epoch = (number(run, key) for key in ("max_steps", "save_steps", "saves_per_epoch"))
    if steps and every and every >= 1:
        return math.ceil(steps / every)
    if every or run.config.get("save_strategy") not in (None, "epoch") or steps:
        return None
    return math.ceil((number(run, "num_epochs") or 1.0) * (per_epoch or 1.0))


def number(run: Run, key: str) -> float | None:
    """A positive number of the YAML."""
    value = run.config.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _saved_weights(run: Run, weights: Weights) -> int:
    """Adapters and trained copies alone, or the whole model in the width that it computes in."""
    if run.adapter is not None:
        return weights.trained_bytes
    return run.compute_bytes * weights.elements


def states_of(run: Run, weights: Weights) -> int:
    """The optimizer's states over all ranks; under DeepSpeed with its master weights."""
    optimizer = effective_optimizer(run)
    match run.sharding:
        case Zero():
            width = run.sharding.master_bytes + flat_state_width(optimizer, run.sharding.master_bytes)
            return round(width * weights.trained_elements)
        case _:
            return sum(state_bytes(optimizer, group) for group in weights.trained)
