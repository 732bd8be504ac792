"""Which decoders' layers an oracle compares with transformers' modules: ``compared.json``, held by the oracles."""

import json
from functools import cache
from pathlib import Path


@cache
def compared() -> frozenset[str]:
    """Their model types."""
    return frozenset(json.loads(Path(__file__).with_name("compared.json").read_text(encoding="utf-8")))


def is_compared(model_type: str) -> bool:
    """Whether layers of this type are among them."""
    return model_type in compared()
