"""What a config's entry says of rows, in the words of `odd_files.py`."""

from collections.abc import Mapping
from typing import Any


def meaning(config: Mapping[str, Any]) -> dict[str, Any]:
    """The kind of rows, and which columns and roles are read."""
    entry = config["datasets"][0]
    kind = entry["type"]
    if config.get("rl"):
        return {"kind": config["rl"]}
    if kind == "alpaca":
        return {"kind": "answer", "asks": "instruction", "says": "output", "more": "input"}
    if isinstance(kind, dict):
        names = {"asks": "field_instruction", "says": "field_output", "more": "field_input", "system": "field_system"}
        return {"kind": "answer"} | {word: kind[key] for word, key in names.items() if key in kind}
    if kind == "completion":
        return {"kind": "text", "field": entry.get("field", "text")}
    keys = entry.get("message_property_mappings", {"role": "role", "content": "content"})
    return {"kind": "chat", "field": entry["field_messages"], **keys, "trains": trained(entry)}


def trained(entry: Mapping[str, Any]) -> set[str]:
    """The roles by the names in the rows that are trained."""
    return set(entry.get("roles", {}).get("assistant", ("assistant", "gpt")))
