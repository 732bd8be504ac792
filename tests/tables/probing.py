"""Which keys of axolotl's are on their way out: its real schema says so when it is given one."""

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tables.asking import Asked, Row, Rows

BASE: dict[str, Any] = {
    "base_model": "a/b",
    "datasets": [{"path": "a/b", "type": "alpaca"}],
    "learning_rate": 1e-4,
    "micro_batch_size": 3,
    "output_dir": "out",
}
CAPABILITIES = {"bf16": True, "fp8": True, "tf32": True, "n_gpu": 1, "compute_capability": "sm_90"}
CONDITIONS = {"capabilities": CAPABILITIES, "env_capabilities": {"torch_version": "2.13.0"}}
GOING = re.compile(r"deprecated|no longer supported|superseded|ha(?:s|ve) been removed|not supported in", re.IGNORECASE)
SUCCESSOR = re.compile(r"[Uu]se [`']?(\w+(?:\.\w+)*)")
IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Prober:
    """axolotl's schema, asked key by key."""

    def __init__(self, schema: Any, package: Path) -> None:
        self.schema = schema
        self.package = package
        self.heard = _Heard()
        logging.getLogger("axolotl").addHandler(self.heard)

    def settle(self, rows: Rows, plugin: Any) -> None:
        """Notes which keys are on their way out, and loosens the kinds of all."""
        schema: Any = type("Probed", (self.schema, plugin), {}) if plugin else self.schema
        asked = Asked(schema, BASE | CONDITIONS)
        for key, row in rows.items():
            stated = getattr(schema.model_fields.get(key), "deprecated", None)
            going = self.going(asked, key, row["kinds"], stated)
            if going:
                row["deprecated"] = going
        asked.loosen(rows)

    def removed(self, known: set[str]) -> Rows:
        """Keys that the schema lacks, and whose names its validators still refuse."""
        source = (self.package / "utils" / "schemas" / "validation.py").read_text(encoding="utf-8")
        constants = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
        names = sorted(name for name in constants if isinstance(name, str) and IDENTIFIER.fullmatch(name))
        asked = Asked(self.schema, BASE | CONDITIONS)
        found = {name: self.going(asked, name, ["any"], None) for name in names if name not in known}
        return {
            name: {"kinds": ["any"], "deprecated": going}
            for name, going in found.items()
            if going and going["effect"] == "refused"
        }

    def going(self, asked: Asked, key: str, kinds: list[Any], stated: str | None) -> dict[str, Any] | None:
        """Whether a key is on its way out: what happens to it, and which keys take its place."""
        for value in samples(kinds):
            self.heard.lines.clear()
            after, error = asked.answer({key: value})
            lines = [str(error)] if error else list(self.heard.lines)
            text = " ".join(line for line in lines if key in line and GOING.search(line))
            if error and text:
                return {"effect": "refused"}
            if after is not None and (text or stated):
                return self.moved(key, value, f"{text} {stated or ''}", asked.answer({})[0] or {}, after)
        return None

    def moved(self, key: str, value: Any, text: str, base: Row, after: Row) -> Row:
        """Where the schema puts the value of a key; failing that, whether anything still reads it."""
        changed = {name for name in after if name != key and after[name] != base.get(name) and name in text}
        to = {name: None if same(after[name], value) else after[name] for name in sorted(changed)}
        if to:
            return {"effect": "moved", "to": to}
        if self.is_read(key):
            return {"effect": "kept"}
        named = [name for name in SUCCESSOR.findall(text) if name.split(".")[0] in after and name != key]
        return {"effect": "ignored", **({"to": {named[0]: None}} if named else {})}

    def is_read(self, key: str) -> bool:
        """Whether axolotl names the key anywhere outside its schema."""
        word = re.compile(rf"\bcfg\.{key}\b|[\"']{key}[\"']")
        return any(word.search(text) for text in self.sources())

    def sources(self) -> Iterator[str]:
        """The text of axolotl's modules, less its schema and its command line."""
        for file in self.package.rglob("*.py"):
            if not {"schemas", "cli"} & set(file.relative_to(self.package).parts):
                yield file.read_text(encoding="utf-8")


def same(one: Any, other: Any) -> bool:
    """Equal, and ``True`` is not 1."""
    return type(one) is type(other) and one == other


def samples(kinds: list[Any]) -> list[Any]:
    """Values that a key of these kinds may have; named values only where it has no other."""
    simple = {"bool": True, "int": 7, "float": 0.5, "str": "words", "any": True}
    found: list[Any] = [simple[kind] for kind in kinds if isinstance(kind, str) and kind in simple]
    found += [["words"] for kind in kinds if isinstance(kind, dict) and "list" in kind]
    return found or [kind["values"][0] for kind in kinds if isinstance(kind, dict) and "values" in kind]
