"""The largest smaller model that would train as a run is written, or with edits that train the same."""

from collections.abc import Callable, Sequence
from typing import Any

from advisor.documents import Set
from advisor.engine.regression import new_errors
from advisor.engine.states import Plan, State
from advisor.models import Unknown, resolve
from advisor.models.catalogue import entries, lookup, names
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import with_config
from advisor.util import counted, regex

MOST = 6
"""Smaller models that are tried, the largest first."""
PLANNED = 2
"""So many of them with edits."""
SIZE = regex(r"\d+(?:\.\d+)?[bm](?=-|$)")
GENERATION = regex(r"(llama-3)\.\d")
"""Sizes of Llama 3 came out under several numbers."""


def smaller_model(run: Run, plan: Callable[[Run], Plan]) -> str:
    """The largest smaller model of the same make that fits, as the run is written or after its plan; or nothing.

    Only the two largest are planned for.
    """
    for place, name in enumerate(_smaller(run)):
        other = resolve(name)
        if isinstance(other, Unknown):
            continue
        made = with_config(replace(run, model=other), [Set("base_model", name)])
        after, how = State(made), "as written"
        if after.verdict != "fits" and place < PLANNED:
            found = plan(made)
            after, how = found.end, f"with {counted(len(found.steps), 'edit')}"
        if after.verdict == "fits" and not new_errors(run, after.run):
            in_full = ", trained in full" if run.adapter is None else ""
            return f"`{name}` would fit {how}{in_full}: {after.estimate.filled}."
    return ""


def _smaller(run: Run) -> list[str]:
    """Names of smaller models of the run's make, the largest first."""
    own = lookup(run.base_model) if run.model is not None and run.base_model else None
    if own is None:
        return []
    makes = (_make(run.base_model), _make(own["id"]))
    found = {name: each["parameters"] for each in entries() if (name := _of_make(each, makes))}
    smaller = [name for name in found if found[name] < own["parameters"]]
    return sorted(smaller, key=lambda name: (-found[name], _sized(name) != _sized(run.base_model)))[:MOST]


def _of_make(entry: dict[str, Any], makes: Sequence[str]) -> str:
    """The name under which a model is of the first make that it has a name of: ``-Instruct`` of ``-Instruct``."""
    by_make = {_make(name): name for name in reversed(names(entry))}
    return next((by_make[make] for make in makes if make in by_make), "")


def _make(name: str) -> str:
    """What models of a make are called alike."""
    return GENERATION.sub(r"\1", _sized(name))


def _sized(name: str) -> str:
    """A model's name without its size."""
    return SIZE.sub("#", name.lower())
