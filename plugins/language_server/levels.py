"""A path of keys -> the rows of the key tables there. Below ``deepspeed`` it is DeepSpeed's table."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.schemas import DATASETS_BY_LOSS, Row, Table, axolotl_keys, deepspeed_keys, levels_in
from advisor.util import is_mapping

from .places import ITEM, Path

DEEPSPEED = "deepspeed"
DATASET = ("datasets", ITEM)


def rows_at(path: Path, loss: str = "") -> Mapping[str, Row]:
    """The keys that may stand in the mapping at a path; ``loss``: what the config says for ``rl``."""
    table, kinds = _kinds_at(path, loss)
    return {key: row for level in reversed(levels_in(kinds)) for key, row in table.rows(level).items()}


def row_at(path: Path, loss: str = "") -> Row:
    """The row of a key; of an item of a list that of its items alone. Empty where the tables have none."""
    if path[-1] == ITEM:
        return {"kinds": _kinds_at(path, loss)[1]}
    row = rows_at(path[:-1], loss).get(path[-1])
    return row or (_of_plugins(path[-1]) if len(path) == 1 else {})


def _kinds_at(path: Path, loss: str) -> tuple[Table, list[Any]]:
    """What may stand at a path."""
    table, below = (deepspeed_keys(), path[1:]) if path[:1] == (DEEPSPEED,) else (axolotl_keys(), path)
    kinds: list[Any] = [{"level": table.root}]
    for count, key in enumerate(below, 1):
        kinds = list(_in_list(kinds) if key == ITEM else _under(table, kinds, key))
        if below[:count] == DATASET:
            kinds = [{"level": DATASETS_BY_LOSS.get(loss, "SFTDataset")}]
    return table, kinds


def _in_list(kinds: list[Any]) -> Iterator[Any]:
    """What the items of a list may be."""
    for kind in kinds:
        if is_mapping(kind) and "list" in kind:
            yield from kind["list"]


def _under(table: Table, kinds: list[Any], key: str) -> Iterator[Any]:
    """What the value of a key may be."""
    for level in levels_in(kinds):
        row = table.rows(level).get(key) or (_of_plugins(key) if level == axolotl_keys().root else {})
        yield from row.get("kinds", ())


def _of_plugins(key: str) -> Row:
    """The row of a key that a plugin adds to the top level."""
    table = axolotl_keys()
    owner = table.owners.get(key)
    return table.plugins[owner][key] if owner is not None else {}
