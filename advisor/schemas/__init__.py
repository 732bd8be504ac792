"""Which keys axolotl and DeepSpeed take, of what kinds, since when: made from their own classes by ``make tables``.

The tables are JSON, read when they are first asked for; nothing here imports what they were made from.
"""

from advisor.schemas.kinds import levels_in
from advisor.schemas.spelling import nearest
from advisor.schemas.table import (
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
from advisor.schemas.value_kinds import fits

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
