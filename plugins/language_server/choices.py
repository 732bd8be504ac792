"""What may stand at a place: keys and values of the key tables, and the names that the advisor knows."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from advisor.engine.registry import built_in_rules
from advisor.hardware.catalogue import known_gpus
from advisor.hardware.parse import EXAMPLES
from advisor.memory.optimizers import OPTIMIZERS
from advisor.models import catalogue_ids
from advisor.record import record
from advisor.run.deepspeed.shipped import SHIPPED
from advisor.schemas import axolotl_keys
from advisor.schemas.names import ATTENTION, DATASET_HANDLERS, DATASET_STRATEGIES, LR_SCHEDULERS
from advisor.util import is_mapping

from .levels import DEEPSPEED, row_at, rows_at
from .places import ITEM, Path

MOST_FILES = 100
"""Files of a folder that are offered."""
UNBUILT = frozenset(["ao_adamw_4bit", "ao_adamw_8bit"])
"""In axolotl's enum of optimizers, and nothing builds them (rules/lint/unknown_optimizer.py)."""


@record
class Choice:
    """A word, what it is in a few others, and its ``kind`` as the protocol names it."""

    word: str
    detail: str = ""
    kind: str = "Value"
    opens: bool = False
    """Of a key: whether nothing but a mapping or a list may be its value."""


def keys_at(path: Path, siblings: frozenset[str], plugins: Iterable[str] = (), loss: str = "") -> Iterator[Choice]:
    """The keys of a mapping that are not there yet, without those that are deprecated."""
    rows = dict(rows_at(path, loss))
    for plugin in plugins if not path else ():
        rows |= axolotl_keys().plugins.get(plugin, {})
    for key, row in rows.items():
        if key not in siblings and "deprecated" not in row:
            yield Choice(key, ", ".join(dict.fromkeys(map(_in_words, row["kinds"]))), "Property", _opens(row["kinds"]))


def _in_words(kind: Any) -> str:
    """A kind of value in a word or two."""
    match kind:
        case {"values": [*values]}:
            return " | ".join(map(str, values[:6])) + (" | ..." if len(values) > 6 else "")
        case {"level": _} | {"map": _} | "map":
            return "mapping"
        case {"list": _}:
            return "list"
        case _:
            return kind if isinstance(kind, str) else "str"


def _opens(kinds: Sequence[Any]) -> bool:
    """Whether the value of a key stands on the lines below it."""
    return {_in_words(kind) for kind in kinds} - {"null"} <= {"mapping", "list"}


def values_at(path: Path, loss: str = "") -> Iterator[Choice]:
    """The values that are known by name."""
    names = NAMES[path]() if path in NAMES else ()
    yield from map(Choice, names)
    row = row_at(path, loss)
    for kind in row.get("kinds", ()):
        if is_mapping(kind) and "values" in kind:
            values = (str(value) for value in kind["values"])
            yield from (Choice(value) for value in values if value not in UNBUILT and value not in names)
        elif kind == "bool":
            yield from (Choice("true"), Choice("false"))
    if row.get("auto"):
        yield Choice("auto", "filled in from the YAML")


def deepspeed_files(folder: str, opened: Iterable[str]) -> Iterator[Choice]:
    """JSONs of the working directory's folders and next to the YAML, then those that axolotl ships."""
    found = {os.path.relpath(file, folder) for file in opened if file.endswith(".json")}
    for place in ("", "deepspeed_configs"):
        try:
            names = sorted(os.listdir(os.path.join(folder, place)))
        except OSError:
            continue
        found |= {os.path.join(place, name) for name in names[:MOST_FILES] if name.endswith(".json")}
    yield from (Choice(name, "a file here", "File") for name in sorted(found) if not name.startswith(".."))
    shipped = (f"deepspeed_configs/{name}" for name in SHIPPED)
    yield from (Choice(name, "axolotl's own", "File") for name in shipped if name not in found)


def cards(own: Iterable[str], *, counted: bool) -> Iterator[Choice]:
    """Cards, those of the settings first; ``counted``: whether their number stands before them."""
    lead = "" if counted else "1x "
    yield from (Choice(lead + name, "from the settings") for name in own)
    yield from (Choice(lead + name, f"{gpu.title}, {gpu.nominal_gb} GB") for name, gpu in known_gpus().items())


def options_of_cards() -> Iterator[Choice]:
    """What else is said of hardware."""
    yield from (Choice(f"{name}=", f"such as {name}={value}", "Keyword") for name, value in EXAMPLES.items())


def rules() -> Iterator[Choice]:
    """The rules that a comment may ignore."""
    for stage in ("lint", "fit", "speed"):
        yield from (Choice(name, rule.title, "Reference") for name, rule in built_in_rules(stage).items())


@lru_cache(maxsize=1)
def models() -> Sequence[str]:
    """The models that are known without a network."""
    return catalogue_ids()


NAMES: Mapping[Path, Callable[[], Sequence[str]]] = {
    ("base_model",): models,
    ("base_model_config",): models,
    ("optimizer",): lambda: tuple(OPTIMIZERS),
    ("lr_scheduler",): lambda: LR_SCHEDULERS,
    ("attn_implementation",): lambda: ATTENTION,
    ("adapter",): lambda: ("lora", "qlora"),
    ("datasets", ITEM, "type"): lambda: (*DATASET_HANDLERS, *DATASET_STRATEGIES),
    ("plugins", ITEM): lambda: tuple(axolotl_keys().plugins),
    (DEEPSPEED, "zero_optimization", "stage"): lambda: ("0", "1", "2", "3"),
}
"""Names that the key tables do not have, for the schema takes any text there."""
