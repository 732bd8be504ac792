"""``make tables``: writes the key tables again from the installed axolotl and DeepSpeed."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tables.from_axolotl import axolotl_table
from tests.tables.from_deepspeed import deepspeed_table

Table = dict[str, Any]
MAKERS = {"axolotl": axolotl_table, "deepspeed": deepspeed_table}
HERE = Path(__file__).parents[2] / "advisor" / "schemas"


def dated(new: Table, old: Table) -> Table:
    """The new table, with ``since`` at what the old one lacks, and what has gone under ``gone``."""
    before = dict(sections(old))
    gone: dict[str, dict[str, str]] = old.get("gone", {})
    kept: dict[str, dict[str, str]] = {}
    for name, rows in sections(new):
        known, left = before.get(name, {}), gone.get(name, {})
        for key, row in rows.items():
            since = known[key].get("since") if key in known else new["version"] if is_newer(new, old) else None
            if since:
                row["since"] = since
        left = {key: version for key, version in left.items() if key not in rows}
        left |= {key: new["version"] for key in known if key not in rows}
        if left:
            kept[name] = left
    return {**new, "gone": kept} if kept else new


def is_newer(new: Table, old: Table) -> bool:
    """Whether the old table is of another version."""
    return bool(old) and old["version"] != new["version"]


def sections(table: Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each mapping of keys to rows, by the name of its level or plugin."""
    for name, level in table.get("levels", {}).items():
        yield name, level["keys"]
    yield from table.get("plugins", {}).items()


def text_of(table: Table) -> str:
    """The table as JSON, one key a line."""
    rest = {name: value for name, value in table.items() if name not in ("levels", "plugins")}
    parts = [f"{compact(name)}:{compact(value)}" for name, value in rest.items()]
    levels = [
        f'{compact(name)}:{{{about(level)},"keys":{lines(level["keys"])}}}' for name, level in table["levels"].items()
    ]
    parts.append('"levels":{\n' + ",\n".join(levels) + "\n}")
    if "plugins" in table:
        plugins = [f"{compact(name)}:{lines(rows)}" for name, rows in table["plugins"].items()]
        parts.append('"plugins":{\n' + ",\n".join(plugins) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def about(level: dict[str, Any]) -> str:
    """What is said of a level in addition to its keys."""
    return ",".join(f"{compact(name)}:{compact(value)}" for name, value in level.items() if name != "keys")


def lines(rows: dict[str, Any]) -> str:
    """Rows in the order of their names, one a line."""
    return "{\n" + ",\n".join(f"{compact(key)}:{compact(rows[key])}" for key in sorted(rows)) + "\n}"


def compact(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def main(folder: Path = HERE) -> None:
    """Write both tables to ``folder``; what was known before is read from next to this file."""
    for name, make in MAKERS.items():
        file = HERE / f"{name}.json"
        old: Table = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        (folder / f"{name}.json").write_text(text_of(dated(make(), old)), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
