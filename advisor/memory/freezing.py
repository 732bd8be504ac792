"""axolotl's ``unfrozen_parameters``: what their patterns match, and what they freeze."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from advisor.models import Architecture
from advisor.run import Run
from advisor.util import regex

PLAIN = regex(r"[\w.-]*")
PREFIX = "base_model.model."
"""What PEFT puts before the names of a model's parameters."""


@lru_cache(maxsize=8)
def unfrozen_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether one of axolotl's ``unfrozen_parameters`` matches the start of a name; all are read once for all names.

    Dots are literal but for ``.+``, ranges are dropped (utils/freeze.py:225@0.19.0). What is no expression matches all.
    """
    bare = [re.sub(r"\[\d*:?\d*\]$", "", pattern).replace("\\.", ".") for pattern in patterns]
    plain = frozenset(name for name in bare if PLAIN.fullmatch(name))
    lengths = sorted({len(name) for name in plain})
    try:
        others = [re.compile(re.sub(r"\.(?!\+)", r"\.", text)) for text in bare if text not in plain]
    except re.error:
        return lambda _name: True
    return lambda name: any(name[:length] in plain for length in lengths) or any(other.match(name) for other in others)


@lru_cache(maxsize=8)
def freezes_all(run: Run, model: Architecture) -> bool:
    """Whether nothing is trained: patterns that match no name under an adapter, which they freeze as well.

    They are applied once PEFT has wrapped the model: axolotl/train.py:85,109-111, utils/freeze.py:74-81@0.19.0.
    """
    if run.lora is None or not run.unfrozen_parameters:
        return False
    return not any(map(unfrozen_matcher(run.unfrozen_parameters), wrapped_names(run, model)))


def wrapped_names(run: Run, model: Architecture) -> Iterator[str]:
    """The names of all parameters as PEFT gives them."""
    for tensor in model.tensors:
        for layer in range(tensor.count if "*" in tensor.name else 1):
            module, _, last = tensor.name.replace("*", str(layer)).rpartition(".")
            yield f"{PREFIX}{module}.{last}"
            if run.lora is not None and tensor.linear:
                yield f"{PREFIX}{module}.base_layer.{last}"
                yield f"{PREFIX}{module}.lora_A.default.weight"
                yield f"{PREFIX}{module}.lora_B.default.weight"
