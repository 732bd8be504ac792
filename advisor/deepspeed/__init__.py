"""DeepSpeed JSON -> facts, with "auto" resolved as transformers does it; and back."""

from advisor.deepspeed.edits import EDITS, changes, fresh_config
from advisor.deepspeed.read import zero
from advisor.deepspeed.section import Section
from advisor.deepspeed.shipped import has_shipped_name, shipped

__all__ = ["EDITS", "Section", "changes", "fresh_config", "has_shipped_name", "shipped", "zero"]
