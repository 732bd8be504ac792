"""How evaluation's rows reach the model: from which set, packed or not, and how long they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.run.axolotl.preference import MOST_ROWS, classifier
from advisor.run.axolotl.reader import Reader

if TYPE_CHECKING:
    from advisor.run.axolotl.facts import EvaluationFacts


def evaluation(
    reader: Reader, micro_batch_size: int, sequence_len: int, *, packing: bool, padded: bool
) -> EvaluationFacts:
    """Rows and their length in evaluation.

    Packed evaluation fills bins as training does, ``micro_batch_size`` rows of ``sequence_len`` tokens, whatever
    ``eval_batch_size`` says: axolotl/core/trainers/base.py:142-186,222-251@0.19.0.
    """
    packed = packing and reader.flag("eval_sample_packing", default=True, why="axolotl: sample_packing")
    given = reader.integer("eval_batch_size", micro_batch_size, "axolotl: micro_batch_size", least=1, most=MOST_ROWS)
    longest = reader.integer("eval_sequence_len", sequence_len, "axolotl: sequence_len", least=1)
    # The same set again is what training has prepared: axolotl/utils/data/shared.py:660-690@0.19.0, the name of both.
    apart = reader.has("test_datasets") and reader.source.at("test_datasets") != reader.source.at("datasets")
    apart = apart and not reader.flag("skip_prepare_dataset")
    cut = apart and not reader.text("rl") and classifier(reader) is None
    return {
        "evaluates": evaluates(reader),
        "packs_evaluation": packed,
        "cuts_evaluation": cut and not (packed or padded),
        "eval_batch_size": micro_batch_size if packed else given,
        "eval_sequence_len": filled(
            longest if cut else sequence_len, sequence_len, micro_batch_size if packed else int(padded)
        ),
    }


def filled(longest: int, sequence_len: int, rows: int) -> int:
    """Tokens of the longest row: bins of ``rows`` times ``sequence_len`` are filled, of long rows several; 0: none.

    Rows of ``test_datasets`` alone are cut at ``eval_sequence_len``, those that ``val_set_size`` splits off with the
    others: axolotl/utils/data/sft.py:347-350, core/builders/causal.py:387-390@0.19.0.
    """
    return -(-longest // (rows * sequence_len)) * sequence_len if rows else longest


def evaluates(reader: Reader) -> bool:
    """Whether evaluation runs: axolotl/core/builders/base.py:523-533@0.19.0."""
    has_data = reader.number("val_set_size", 0.0) > 0 or reader.has("test_datasets")
    steps = bool(reader.take("eval_steps", 0, "not given")) or bool(reader.take("evals_per_epoch", 0, "not given"))
    strategy = reader.text("eval_strategy", "no")
    return has_data and (steps or strategy not in {"no", ""})
