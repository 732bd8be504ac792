"""Edits of a finding that the plan makes itself: there they are its first steps, and it goes on from them."""

from collections.abc import Sequence

from advisor.documents import Change, Set, as_path
from advisor.engine.check import planned
from advisor.engine.options import Options
from advisor.memory import estimate
from advisor.record import replace
from advisor.run import Run

ASKED = frozenset({"adapter", "quantize_moe_experts", "lora_target_linear", "lora_target_modules"})
"""What the steps write that the bits of the YAML ask for."""


def is_in_plan(run: Run, changes: Sequence[tuple[str, Sequence[Change]]], options: Options) -> bool:
    """Whether the plan of a run fits, and makes these changes."""
    wanted = [change for _, each in changes for change in each]
    keys = {".".join(map(str, as_path(change.path))) for change in wanted}
    if any(name != "config" for name, _ in changes) or not keys <= ASKED:
        return False
    plan = planned(run, estimate(run), replace(options, safe_only=False))
    return plan is not None and plan.verdict == "fits" and all(_is_made(plan.end.run, change) for change in wanted)


def _is_made(run: Run, change: Change) -> bool:
    """Whether a run's config is as a change would have it."""
    value = run.config.get(".".join(map(str, as_path(change.path))))
    return value == change.value if isinstance(change, Set) else value is None
