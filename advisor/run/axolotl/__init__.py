"""axolotl YAML -> facts, with axolotl's own defaults resolved; edits of the run -> edits of the YAML."""

from advisor.run.axolotl.edits import EDITS, changes
from advisor.run.axolotl.reader import Reader

__all__ = ["EDITS", "Reader", "changes"]
