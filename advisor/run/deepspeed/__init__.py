"""DeepSpeed JSON -> facts, with "auto" resolved as transformers does it; and back."""

from advisor.run.deepspeed.edits import EDITS, changes, fresh_config, live_for
from advisor.run.deepspeed.read import zero
from advisor.run.deepspeed.section import Section
from advisor.run.deepspeed.shipped import has_shipped_name, is_shipped, shipped

__all__ = [
    "EDITS",
    "Section",
    "changes",
    "fresh_config",
    "has_shipped_name",
    "is_shipped",
    "live_for",
    "shipped",
    "zero",
]
