"""Which terms of a traced model come from its trace."""

from collections.abc import Iterable
from dataclasses import replace

from advisor.memory.activations import traced_source
from advisor.memory.forward import CHECKPOINTS, SAVED, WORKING
from advisor.memory.ledger import Term
from advisor.run import Run

BY_FORMULA = {SAVED, WORKING, CHECKPOINTS}


def sourced(run: Run, terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms that need memory; where the model was traced, its activations name the trace as their source."""
    source = traced_source(run)
    return tuple(
        replace(term, source=source) if source and term.part == "activations" and term.source in BY_FORMULA else term
        for term in terms
        if term.bytes
    )
