"""axolotl's ``--key value`` over the YAML, as axolotl applies them: axolotl/cli/config.py:36-88,268-301@0.19.0."""

from collections.abc import Mapping
from typing import Any

from advisor.documents import Document, Remove, Set

OF_THE_COMMAND = frozenset(
    {
        *("launcher", "cloud", "sweep", "num_processes", "main_process_port"),
        *("debug", "debug_text_only", "debug_num_examples", "prompter", "shard"),
    }
)
"""Options of ``axolotl train`` itself, which it adds to the config: axolotl/cli/main.py:95-110, cli/args.py:38-46,
cli/utils/train.py:62-110@0.19.0."""

WORDS: Mapping[str, Any] = {
    "true": True,
    "yes": True,
    "false": False,
    "no": False,
    "null": None,
    "none": None,
    "~": None,
}


def overridden(config: Document, overrides: Mapping[str, Any]) -> Document:
    """The config with the command's values in their places; keys may be dotted. A null takes its key away."""
    if config.get("strict"):
        overrides = {key: value for key, value in overrides.items() if config.has(key.partition(".")[0])}
    changes: list[Set | Remove] = []
    for key, value in overrides.items():
        said = _coerced(value, config.at(key))
        changes.append(Remove(key) if said is None else Set(key, said))
    return config.overlaid(*changes) if changes else config


def _coerced(value: Any, existing: Any = None) -> Any:
    """A word of the command line as the type that the YAML already has there, else as what it looks like."""
    if not isinstance(value, str):
        return value
    if isinstance(existing, bool):
        return value.lower() in {"true", "1", "yes"}
    if existing is not None and not isinstance(existing, (int, float)):
        return value
    if existing is None and value.lower() in WORDS:
        return WORDS[value.lower()]
    for kind in (float,) if isinstance(existing, float) else (int,) if isinstance(existing, int) else (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
