"""Which keys axolotl and DeepSpeed take, of what kinds, since when: made from their own classes by ``make tables``.

The tables are JSON, read when they are first asked for; nothing here imports what they were made from.
"""

from advisor.tables.kinds import levels_in
from advisor.tables.naming import nearest
from advisor.tables.table import (
    DATASETS_BY_LOSS,
    Found,
    Row,
    Table,
    axolotl_keys,
    bare,
    deepspeed_keys,
    listed_plugins,
    plugin_of,
)
from advisor.tables.values import fits

__all__ = [
    "DATASETS_BY_LOSS",
    "Found",
    "Row",
    "Table",
    "axolotl_keys",
    "bare",
    "deepspeed_keys",
    "fits",
    "levels_in",
    "listed_plugins",
    "nearest",
    "plugin_of",
]
