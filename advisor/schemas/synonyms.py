"""What other trainers call a key of axolotl: ``synonyms.jsonl``, read when a config has a key that axolotl lacks."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from advisor.record import record


@record
class Synonym:
    """``origin`` is where the name comes from; ``same``: the value means the same there.

    ``when_true``: what `true` is here, where values are others; empty where that is not known.
    """

    key: str
    means: str
    origin: str
    same: bool = True
    when_true: str = ""


@lru_cache(maxsize=1)
def synonyms() -> Mapping[str, Synonym]:
    """All of them, by the other name."""
    rows = map(json.loads, Path(__file__).with_name("synonyms.jsonl").read_bytes().splitlines())
    found = (
        Synonym(row["key"], row["means"], row["from"], not row.get("other_values"), row.get("true", "")) for row in rows
    )
    return {one.key: one for one in found}
