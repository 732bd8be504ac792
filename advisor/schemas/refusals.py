"""What axolotl's validators refuse, as far as a table can say it: rows of keys, conditions, reason and remedy.

``refusals.jsonl`` has a row for each. ``at`` is the key that the finding points at, and the row is looked at only where
that key is there; ``when`` maps paths to conditions that all hold. Paths that begin with ``@`` are facts of the run.
``next_to`` or ``without`` names what it is at odds with or lacks. ``fix`` sets keys, or removes them by null.
``plugin``: only where that plugin is listed, since its keys are dropped otherwise. ``since``: from that version on.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from advisor.documents import Change, Remove, Set
from advisor.engine.rule import Hit
from advisor.record import record
from advisor.run import Run
from advisor.run.axolotl.attention import kernel
from advisor.run.axolotl.flags import plugin_names
from advisor.run.stack import release
from advisor.schemas.conditions import Look, holds
from advisor.util import is_list, is_mapping

PREFIXED = "fsdp_config."


@record
class _Refusal:
    """One row."""

    rule: str
    at: str
    when: Mapping[str, Any]
    because: str
    remedy: str
    source: str
    next_to: str = ""
    without: str = ""
    fix: Mapping[str, Any] | None = None
    plugin: str = ""
    since: str = ""

    def holds(self, run: Run, look: Look) -> bool:
        """Whether axolotl refuses this run for it."""
        if look(self.at) is None or (self.since and not run.stack.at_least("axolotl", self.since)):
            return False
        if self.plugin and self.plugin not in plugin_names(run.config):
            return False
        for path, condition in self.when.items():
            value = look(path)
            if path[0] == "@" and value is None:
                return False
            if not holds(condition, value, look):
                return False
        return True

    def hit(self, run: Run, look: Look) -> Hit:
        """What is said of it, and the edit."""
        head = shown(self.at, look)
        if self.next_to and look(self.next_to) is not None:
            head += f" with {shown(self.next_to, look)}"
        head += f" without {self.without}" if self.without else ""
        return Hit(placed(run, self.at), refused(run, head, self.because, self.remedy, self.since), self.changes(run))

    def changes(self, run: Run) -> tuple[Change, ...]:
        """The edit."""
        fix = {placed(run, path): value for path, value in (self.fix or {}).items()}
        return tuple(Remove(path) if value is None else Set(path, value) for path, value in fix.items())


@lru_cache(maxsize=1)
def written() -> Mapping[str, Mapping[str, list[Mapping[str, Any]]]]:
    """The rows as they are written, by rule and by the top-level key that must be there."""
    lines = Path(__file__).with_name("refusals.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in json.loads(f"[{','.join(lines)}]"):
        found.setdefault(row["rule"], {}).setdefault(row["at"].partition(".")[0], []).append(row)
    return found


@lru_cache(maxsize=256)
def rows_of(rule: str, key: str) -> tuple[_Refusal, ...]:
    """The rows of a rule about a key; made when a config has that key."""
    return tuple(_Refusal(**row) for row in written()[rule].get(key, ()))


def refusals() -> Mapping[str, Mapping[str, tuple[_Refusal, ...]]]:
    """All rows."""
    return {rule: {key: rows_of(rule, key) for key in keys} for rule, keys in written().items()}


def hits(run: Run, rule: str) -> Iterator[Hit]:
    """What the rows of a rule find: for one key and reason once."""
    keys = written()[rule]
    look = looked_up(run)
    said: set[str] = set()
    for key in (key for key in run.config if key in keys):
        for row in rows_of(rule, key):
            if row.holds(run, look):
                hit = row.hit(run, look)
                if hit.message not in said:
                    said.add(hit.message)
                    yield hit


def refused(run: Run, what: str, because: str, remedy: str, since: str = "") -> str:
    """The sentence about a config that axolotl does not take."""
    version = ".".join(map(str, release(run.stack.axolotl)))
    new = f" (new in {since})" if since else ""
    return f"{what}: axolotl {version} refuses the config{new}, since {because}; {remedy}"


def looked_up(run: Run) -> Look:
    """The values of the config by path, the facts of the run among them."""

    def look(path: str) -> object:
        if path[0] == "@":
            return fact(run, path)
        return run.config.at(placed(run, path)) if "." in path else run.config.get(path)

    return look


def placed(run: Run, path: str) -> str:
    """Where a value stands: keys of ``fsdp_config`` may have its prefix (validation.py:1194-1212@0.19.0)."""
    if path.startswith(PREFIXED) and not run.config.has(path):
        prefixed = f"{PREFIXED}fsdp_{path.removeprefix(PREFIXED)}"
        return prefixed if run.config.has(prefixed) else path
    return path


def fact(run: Run, name: str) -> object:
    """What the table asks of the run; None where it is not known, and then no condition holds."""
    match name:
        case "@world_size":
            return run.world_size if run.hardware else None
        case "@capability":
            capability = run.hardware.gpu.compute_capability if run.hardware else None
            return capability[0] * 10 + capability[1] if capability else None
        case "@torch":
            return run.stack.torch
        case "@fsdp":
            return run.fsdp.version if run.fsdp else None
        case _:
            return kernel(run).base


def shown(path: str, look: Look) -> str:
    """A key, and its value where that is short."""
    value = look(path)
    if is_mapping(value) or is_list(value):
        return f"`{path}`"
    return f"`{path}: {str(value).lower() if isinstance(value, bool) else str(value)[:40]}`"
