"""The tables, and the walk through a config along one of them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from advisor.documents import Document
from advisor.documents import Path as KeyPath
from advisor.record import record
from advisor.run.axolotl.flags import plugin_names
from advisor.schemas.kinds import levels_in
from advisor.schemas.value_kinds import fits
from advisor.util import is_list, is_mapping

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
# What axolotl makes of the items of `datasets` before its schema sees them: utils/config/__init__.py:472-496@0.19.0.
DATASETS_BY_LOSS = {"dpo": "DPODataset", "ipo": "DPODataset", "simpo": "DPODataset", "kto": "KTODataset"}


@record
class Found:
    """A key of a config, the level of the table that it stands at, and its row there (None: no such key)."""

    path: KeyPath
    value: object
    level: str
    row: Row | None
    siblings: Mapping[Any, Any]
    """The mapping that the key stands in."""

    @property
    def key(self) -> str:
        """Its name."""
        return str(self.path[-1])

    @property
    def at(self) -> str:
        """The dotted path; of the mapping around it where a name itself holds a dot."""
        parts = list(map(str, self.path))
        return ".".join(parts) if not any("." in part for part in parts) else ".".join(parts[:-1])


@record(eq=False)
class Table:
    """The keys of one library: rows by level, and by plugin what that adds to the root."""

    version: str
    root: str
    levels: Mapping[str, Mapping[str, Any]]
    plugins: Mapping[str, Rows]

    def rows(self, level: str) -> Rows:
        """The keys of a level."""
        return self.levels[level]["keys"]

    def forbids(self, level: str) -> bool:
        """Whether a level refuses other keys; else it drops them without a word."""
        return self.levels[level]["forbids"]

    def required(self, level: str) -> list[str]:
        """The keys without which a level is refused."""
        return self.levels[level].get("required", [])

    @cached_property
    def owners(self) -> Mapping[str, str]:
        """The first plugin that adds each key."""
        return {key: plugin for plugin, rows in reversed(list(self.plugins.items())) for key in rows}

    def walk(self, values: Mapping[Any, Any]) -> Iterable[Found]:
        """Every key of a config that stands at a level of the table; of a document, which stays the same, once."""
        return _walked(self, values) if isinstance(values, Document) else self.found_in(values)

    def found_in(self, values: Mapping[Any, Any]) -> Iterator[Found]:
        """What ``walk`` gives."""
        added = {key: row for plugin in listed_plugins(self, values) for key, row in self.plugins[plugin].items()}
        yield from self._level(values, self.root, (), values, added)

    def _level(
        self, here: Mapping[Any, Any], level: str, above: KeyPath, root: Mapping[Any, Any], added: Rows
    ) -> Iterator[Found]:
        rows = self.rows(level)
        for key, value in here.items():
            if not isinstance(key, str):
                continue
            name = bare(key) if level == "FSDPConfig" else key
            row = rows.get(name) or added.get(name)
            yield Found((*above, key), value, level, row, here)
            for place, inside, below in self._inside((*above, key), value, row, root):
                yield from self._level(inside, below, place, root, {})

    def _inside(
        self, path: KeyPath, value: object, row: Row | None, root: Mapping[Any, Any]
    ) -> Iterator[tuple[KeyPath, Mapping[Any, Any], str]]:
        kinds: list[Any] = row["kinds"] if row else []
        if is_mapping(value) and (levels := levels_in(kinds)):
            yield path, value, self._best(value, levels)
        for kind in kinds:
            if is_mapping(kind) and "list" in kind and is_list(value):
                names = levels_in(kind["list"])
                for index, item in enumerate(value):
                    if is_mapping(item) and names:
                        yield (*path, index), item, self._chosen(path, item, names, root)

    def _chosen(self, path: KeyPath, item: Mapping[Any, Any], names: list[str], root: Mapping[Any, Any]) -> str:
        """Of several levels the one that an item is read with."""
        if path == ("datasets",):
            plain = "SyntheticDataset" if item.get("type") == "_synthetic" else "SFTDataset"
            return DATASETS_BY_LOSS.get(str(root.get("rl")), plain)
        return self._best(item, names)

    def _best(self, item: Mapping[Any, Any], names: list[str]) -> str:
        """Of the levels that accept all of an item, or of all if none does, that with the most keys in common.

        pydantic tries each class of a union, and takes of those that pass the one that knows the most of the keys.
        """
        passing = [name for name in names if self._accepts(name, item)] if len(names) > 1 else names
        return max(passing or names, key=lambda name: len(self.rows(name).keys() & item.keys()))

    def _accepts(self, level: str, item: Mapping[Any, Any]) -> bool:
        rows = self.rows(level)
        fit = all(fits(rows[key]["kinds"], value) for key, value in item.items() if key in rows)
        return fit and all(key in item for key in self.required(level))


def bare(key: str) -> str:
    """A key of ``fsdp_config`` without the prefix that axolotl takes off (validation.py:1194-1212@0.19.0)."""
    return key.replace("fsdp_", "") if key.startswith("fsdp_") and key != "fsdp_version" else key


def listed_plugins(table: Table, values: Mapping[Any, Any]) -> list[str]:
    """The built-in plugins that ``plugins:`` names, in full or in short."""
    names = plugin_names(values)
    return [plugin for plugin in table.plugins if plugin.rsplit(".", 1)[-1] in names]


def plugin_of(table: Table, key: str) -> str | None:
    """The built-in plugin that adds a key."""
    return table.owners.get(key)


@lru_cache(maxsize=4)
def _walked(table: Table, values: Document) -> tuple[Found, ...]:
    return tuple(table.found_in(values))


@lru_cache(maxsize=1)
def axolotl_keys() -> Table:
    """axolotl's keys."""
    return _read("axolotl")


@lru_cache(maxsize=1)
def deepspeed_keys() -> Table:
    """DeepSpeed's keys."""
    return _read("deepspeed")


def _read(name: str) -> Table:
    values = json.loads(Path(__file__).with_name(f"{name}.json").read_bytes())
    return Table(values["version"], values["root"], values["levels"], values.get("plugins", {}))
