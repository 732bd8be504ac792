"""A second estimate, for rows of another length, next to that which the verdict rests on."""

from collections.abc import Callable

from advisor.memory.estimate import estimate
from advisor.memory.ledger import Estimate
from advisor.record import record, replace
from advisor.run import Run


@record
class ShorterRows:
    """The estimate for rows of ``length`` tokens; None where rows have one length anyway, and ``reason`` says which."""

    length: int
    estimate: Estimate | None
    reason: str = ""


def second_estimate(run: Run, length: int, estimated: Callable[[Run], Estimate | None]) -> ShorterRows | None:
    """The estimate if no row were longer than ``length``, by ``estimated``; None where the run itself has none."""
    found = estimate(run)
    if found is None:
        return None
    if found.rows.full:
        how = "packed" if run.sample_packing else "padded"
        return ShorterRows(length, None, f"rows are {how} to {found.rows.length} tokens, whatever their own length")
    evaluated = min(length, run.eval_sequence_len)
    return ShorterRows(length, estimated(replace(run, sequence_len=length, eval_sequence_len=evaluated, prepared=None)))
