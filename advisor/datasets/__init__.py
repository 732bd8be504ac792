"""A file of rows -> what they are, how axolotl reads them, and how long they are."""

from advisor.datasets.entries import prompted, refuse_other_roles
from advisor.datasets.lengths import Range, around, lengths_of, longest_of, texts_in, tokens_in
from advisor.datasets.reading import rows_in
from advisor.datasets.rows import Row, Rows
from advisor.datasets.shapes import (
    Shape,
    fitting,
    lacks_an_answer,
    mapping_of,
    roles_for,
    shape_of,
    table,
    turns_in,
    turns_of,
)

__all__ = [
    "Range",
    "Row",
    "Rows",
    "Shape",
    "around",
    "fitting",
    "lacks_an_answer",
    "lengths_of",
    "longest_of",
    "mapping_of",
    "prompted",
    "refuse_other_roles",
    "roles_for",
    "rows_in",
    "shape_of",
    "table",
    "texts_in",
    "tokens_in",
    "turns_in",
    "turns_of",
]
