"""How long rows are taken to be."""

from advisor.memory.ledger import Rows
from advisor.record import replace
from advisor.run import Run


def rows_of(run: Run) -> Rows:
    """The length that rows are counted at: what they are packed or padded to, else the longest that can occur.

    That is the longest of the dataset that axolotl has prepared, else ``sequence_len``, which longer rows are cut at or
    left out for; those with images are neither (axolotl/utils/collators/mm_chat.py:36-59@0.19.0).
    """
    full, prepared = run.sample_packing or run.pads_to_sequence_len, run.prepared
    if full or prepared is None or run.sequence_len > prepared.sequence_len or prepared.padded >= run.sequence_len:
        return Rows(run.sequence_len, "sequence_len", full=full, uncut=run.uses_images and run.rl is None and not full)
    return Rows(prepared.padded, f"the longest row of {prepared.folder}", full=False)


def as_counted(run: Run) -> Run:
    """The run with rows as long as they are counted at."""
    length = rows_of(run).length
    if length == run.sequence_len:
        return run
    # The rows to evaluate are a part of the same dataset, unless they are named apart.
    evaluated = run.eval_sequence_len if run.config.get("test_datasets") else min(run.eval_sequence_len, length)
    return replace(run, sequence_len=length, eval_sequence_len=evaluated, prepared=None)
