"""A key that takes values of several kinds: what axolotl accepts there is no error here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import parse
from advisor.engine.registry import built_in_rules
from advisor.errors import InputError
from advisor.opening import Context, open_run
from advisor.schemas import axolotl_keys, levels_in
from advisor.util import is_mapping

from .asking import Axolotl, whole

pytestmark = pytest.mark.oracle

# The rules that look at one value alone; the others look at what it would do.
RULES = ("wrong-type", "value-refused", "datasets-refused", "required-key-missing")
VALUES: tuple[Any, ...] = (
    *(True, False, 0, 7, -1, 0.5, "0", "7", "0.5", "true", "words", "auto", "all", "1e-4"),
    *([], ["words"], [7], [0.5], ["1"], {}, {"words": 7}, {"words": [7]}, {"words": "words"}, {"0": "1GiB"}),
)
NAMED = {"datasets", "pretraining_dataset", "test_datasets"}
TABLE = axolotl_keys()
ROOT = TABLE.rows(TABLE.root)


def several(kinds: list[Any]) -> bool:
    """Whether there is a choice, blank left out."""
    inside: list[list[Any]] = [kind["list"] for kind in kinds if is_mapping(kind) and "list" in kind]
    return len([kind for kind in kinds if kind != "null"]) > 1 or any(len(items) > 1 for items in inside)


def is_union(key: str) -> bool:
    """Whether a top-level key may be of several kinds; what a flag replaces is read before its kind is looked at."""
    return several(ROOT[key]["kinds"]) and "deprecated" not in ROOT[key]


def values_of(kinds: list[Any]) -> Iterator[Any]:
    """Values that one of the kinds takes, by name, in lists, and by the keys of each level."""
    for kind in kinds:
        if is_mapping(kind) and "values" in kind:
            yield from kind["values"]
        if is_mapping(kind) and "list" in kind:
            for level in levels_in(kind["list"]):
                yield from ([item] for item in items_of(level))
        if is_mapping(kind) and "level" in kind:
            yield from items_of(kind["level"])


def items_of(level: str) -> Iterator[dict[str, Any]]:
    """Mappings with one key of the level each, of every kind."""
    for key in TABLE.rows(level):
        base = {} if key == "path" else {"path": "a/b"} if "path" in TABLE.rows(level) else {}
        yield from ({**base, key: value} for value in (True, 7, 0.5, "words", ["words"], {"words": ["words"]}))


def errors(config: dict[str, Any], folder: Path) -> list[str]:
    """What the rules about values call an error."""
    text = yaml.safe_dump(config).encode()
    try:
        run = open_run(parse(text, "config.yaml", "yaml"), Context(working_directory=str(folder))).run
    except InputError as error:
        return [str(error)]
    rules = [built_in_rules("lint")[name] for name in RULES]
    return [hit.message for rule in rules for hit in rule.finds(run) if (hit.level or rule.level) == "error"]


@pytest.mark.parametrize("key", [key for key in ROOT if is_union(key)])
def test_what_axolotl_accepts_of_a_union_is_no_error(axolotl: Axolotl, tmp_path: Path, key: str):
    wrong: list[str] = []
    for value in (*VALUES, *values_of(ROOT[key]["kinds"])):
        rest = {"max_steps": 10} if key == "pretraining_dataset" else {}
        config = whole({"base_model": "a/b", "sequence_len": 512, **rest, key: value})
        said = errors(config, tmp_path)
        if said and axolotl.says(config, tmp_path).ok:
            wrong.append(f"{value}: {said}")
    assert wrong == []


@pytest.mark.parametrize("item", [{"data_files": ["a.jsonl", "b.jsonl"]}, {"data_files": "a.jsonl"}, {"skip": "7"}])
def test_a_stream_may_be_described_as_a_dataset(axolotl: Axolotl, tmp_path: Path, item: dict[str, Any]):
    stream = [{"path": "a/b", "type": "completion", **item}]
    config = whole({"base_model": "a/b", "max_steps": 10, "pretraining_dataset": stream})
    assert axolotl.says(config, tmp_path).ok
    assert errors(config, tmp_path) == []
