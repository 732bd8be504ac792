"""The classes of a family's layers in transformers, by model type: ``layer_classes.json``."""

import json
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("layer_classes.json")


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """Each class in the type's modeling files whose name ends as a layer's or a block's, of transformers 5.16.1."""
    return {one: tuple(names) for one, names in json.loads(TABLE.read_text(encoding="utf-8")).items()}


@cache
def layer_classes(model_type: str | None = None) -> tuple[str, ...]:
    """Of a type, empty where the table has it not or its decoder may be another type's; or of all types."""
    if model_type is not None:
        return _table().get(model_type, ())
    return tuple({name: None for names in _table().values() for name in names})
