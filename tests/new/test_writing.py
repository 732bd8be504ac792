"""The text of a config: its values, a comment on each line, in no more than 120 columns."""

import re

import pytest
import yaml

from advisor.new.comments import comment, groups
from advisor.new.writing import WIDEST, written

VALUES = {
    "seed": 1,
    "base_model": "a/b",
    "datasets": [{"path": "x.jsonl", "type": {"format": "a\nb", "field": "c"}}],
    "plugins": ["one", "two"],
    "learning_rate": 2e-5,
    "own_key": {"deep": [1]},
    "empty": [],
}


def test_the_text_has_the_values():
    assert yaml.safe_load(written(VALUES, ["head"], lambda *_: "because")) == VALUES


def test_every_line_has_a_comment_and_none_is_wide():
    text = written(VALUES, ["head"], lambda path, _: f"why {path} is as it is, " + "in many words " * 12)
    lines = [line for line in text.splitlines() if line]
    assert all(len(line) <= WIDEST for line in lines)
    bare = [number for number, line in enumerate(lines) if "#" not in line]
    assert all(lines[number - 1].lstrip().startswith("#") for number in bare)


def test_keys_stand_in_the_order_of_the_comments():
    keys = list(yaml.safe_load(written(VALUES, [], lambda *_: "")))
    assert keys == ["base_model", "datasets", "learning_rate", "plugins", "seed", "own_key", "empty"]
    assert len({key for group in groups() for key in group}) == sum(map(len, groups()))


def test_rates_are_written_with_an_exponent():
    assert re.search(r"^learning_rate: 2\.0e-5 ", written(VALUES, [], lambda *_: "why"), re.MULTILINE)


@pytest.mark.parametrize(
    ("path", "tags", "said"),
    [
        ("chat_template", {"value:llama3", "base"}, "a base has none"),
        ("chat_template", {"value:gemma3", "chat"}, "as axolotl ships it"),
        ("fsdp_config.own", set[str](), "as FSDP2 takes it"),
        ("nobody_knows_this", set[str](), "as the plan's step writes it"),
    ],
)
def test_a_comment_is_the_first_that_holds(path: str, tags: set[str], said: str):
    assert said in comment(path, tags, {})
