"""How far the estimates are from published, measured runs: the figures, and the tables made of them."""

from advisor.accuracy.published import Judged, Published, judged, published
from advisor.accuracy.table import Row, rows, text

__all__ = ["Judged", "Published", "Row", "judged", "published", "rows", "text"]
