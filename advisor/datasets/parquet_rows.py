"""Parquet -> rows, by pyarrow."""

import importlib
from typing import Any

from advisor.datasets.rows import FIRST, Rows, gathered
from advisor.errors import InputError


def parquet_rows(path: str) -> Rows:
    """The first rows alone are read. ``InputError`` without pyarrow, with the command that installs it."""
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        remedy = 'pip install "axolotl-advisor[parquet]"'
        raise InputError("is Parquet, which needs pyarrow", path, remedy=remedy) from error
    try:
        with parquet.ParquetFile(path) as file:
            batch: Any = next(file.iter_batches(batch_size=FIRST), None)
            rows: list[dict[str, Any]] = [] if batch is None else batch.to_pylist()
            return gathered(path, ((0, row) for row in rows), file.metadata.num_rows)
    except (OSError, ValueError) as error:  # what pyarrow raises is one or the other
        said = " ".join(str(error).split())
        raise InputError(f"is no Parquet that can be read: {said}", path, remedy="check the file") from error
