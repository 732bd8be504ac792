"""CONTRIBUTING.md names what a contributor has to write, and every verb and path that it names is there."""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from advisor.engine.rule import Rule
from advisor.hardware.catalogue import GPUS
from advisor.models.family import Family

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_field_of_a_rule_has_its_row():
    rows = re.findall(r"^\| `(\w+)` \|", section("Add a rule"), re.MULTILINE)
    assert sorted(rows) == sorted(item.name for item in fields(Rule))


def test_every_key_of_a_gpu_is_named():
    keys = {key for gpu in json.loads(GPUS.read_text(encoding="utf-8"))["gpus"] for key in gpu}
    assert keys <= set(re.findall(r"`(\w+)`", section("Add a model, an architecture, a GPU, a term")))


def test_the_fields_of_a_family_that_are_named_are_there():
    named = re.search(r"where each field is read\): (.*?) and so on", TEXT)
    assert named
    assert set(re.findall(r"`(\w+)`", named[1])) <= {item.name for item in fields(Family)}


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "README.md"])
def test_every_verb_is_in_the_makefile(name: str):
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^    |`|^)make ([a-z-]+)\b", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
    assert named and named <= verbs


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "README.md"])
def test_every_path_is_there(name: str):
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:advisor|rules|tests|plugins)/[\w/.]+)`", text)) | set(
        re.findall(r"\]\(([\w./]+)\)", text)
    )
    made_up = {"advisor/report/my_format.py"}
    assert [path for path in sorted(paths - made_up) if not (ROOT / path).exists()] == []


WRITTEN = sorted(path for folder in ("advisor", "plugins", "rules", "tests") for path in (ROOT / folder).rglob("*.py"))
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def words_to_avoid() -> re.Pattern[str]:
    """The words that the guide's list puts after "not"."""
    line = next(line for line in TEXT.splitlines() if line.startswith("- No archaisms"))
    avoided = "|".join(re.findall(r'not "([^"]+)"', line))
    return re.compile(rf"(?<![\w-])({avoided})(?![\w-])", re.IGNORECASE)


def told_in(source: str) -> Iterator[tuple[int, str]]:
    """The names, the comments and the docstrings of a file, with their lines; names of rules and code aside."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
        if token.type == tokenize.NAME:
            yield token.start[0], token.string.replace("_", " ")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DEFINED) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, re.sub(r"``.*?``", "", text)


def test_names_comments_and_docstrings_keep_to_the_list_of_words():
    avoided = words_to_avoid()
    assert avoided.search("It is written anew.")
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:80]}"
        for path in WRITTEN
        for line, text in told_in(path.read_text(encoding="utf-8"))
        if avoided.search(text)
    ]
    assert not found, "\n".join(found)
