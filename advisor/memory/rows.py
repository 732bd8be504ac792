"""How long rows are taken to be."""

from advisor.memory.ledger import Rows
from advisor.run import Run


def rows_of(run: Run) -> Rows:
    """The length that rows are counted at: what they are packed or padded to, else the longest that can occur."""
    return Rows(run.sequence_len, "sequence_len", full=run.sample_packing or run.pads_to_sequence_len)
