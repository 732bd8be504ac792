import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import Document, Remove, Set, read

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "")) / "corpus" / "axolotl"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ADVISOR_CORPUS" not in os.environ, reason="ADVISOR_CORPUS is not set"),
]

YAMLS = sorted(
    path for folder in ("examples", "tests_inline") for path in (CORPUS / folder).rglob("*.y*ml") if path.is_file()
)
JSONS = sorted((CORPUS / "deepspeed_configs").glob("*.json"))


def lines_of(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def changed_lines(document: Document, *changes: Any) -> tuple[list[bytes], list[bytes]]:
    """Lines that went and lines that came, between what both texts begin and end with alike."""
    old, new = lines_of(document.raw), lines_of(document.changed(*changes).patched())
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


def comments_below(document: Document, line: int) -> int:
    """Indented comments directly below a top-level key, which belong to it."""
    count = 0
    for text in lines_of(document.raw)[line:]:
        if not (text[:1] == b" " and text.lstrip().startswith(b"#")):
            break
        count += 1
    return count


def scalar_paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    match value:
        case dict():
            pairs: Any = value.items()
        case list():
            pairs = enumerate(value)
        case _:
            return [path]
    return [found for key, item in pairs for found in scalar_paths(item, (*path, key))]


def test_values_are_those_of_the_safe_loader():
    assert len(YAMLS) > 300
    for path in YAMLS:
        assert dict(read(path)) == (yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) or {}), path


def test_replacing_a_scalar_changes_its_lines_alone():
    for path in YAMLS:
        document = read(path)
        for number, (key, old) in enumerate(document.items()):
            value = ("a: b", 12345)[number % 2]
            if isinstance(old, (dict, list)):
                continue
            span = document.span((key,))
            assert span is not None
            gone, came = changed_lines(document, Set((key,), value))
            assert len(came) == 1 and len(gone) == span.end_line - span.line + 1, (path, key)


def test_a_nested_key_adds_lines_and_changes_none():
    for path in YAMLS:
        document = read(path)
        gone, came = changed_lines(document, Set("new_key.below.it", 1))
        # A file without a final line break gains one on its last line.
        assert gone in ([], [line for line in lines_of(document.raw)[-1:] if not line.endswith(b"\n")]), path
        assert len(came) == 3 + len(gone), path


def test_adding_to_every_mapping_adds_one_line():
    for path in YAMLS:
        document = read(path)
        for key, value in document.items():
            if isinstance(value, dict) and value:
                gone, came = changed_lines(document, Set((key, "new_key"), "text"))
                assert (len(gone), len(came)) in {(0, 1), (1, 2), (1, 1)}, (path, key)
            if isinstance(value, list) and value:
                gone, came = changed_lines(document, Set((key,), [*value, "new"]))
                assert (len(gone), len(came)) in {(0, 1), (1, 2), (1, 1)}, (path, key)


def test_removing_a_key_takes_its_lines_and_no_comment_of_others():
    for path in YAMLS:
        document = read(path)
        for key in document:
            key_span, span = document.key_span((key,)), document.span((key,))
            assert key_span is not None and span is not None
            gone, came = changed_lines(document, Remove((key,)))
            below = comments_below(document, span.end_line)
            assert not came and len(gone) == span.end_line - key_span.line + 1 + below, (path, key)


def test_every_scalar_of_every_json_can_be_replaced():
    assert len(JSONS) == 8
    for path in JSONS:
        document = read(path)
        assert dict(document) == json.loads(document.raw)
        for at in scalar_paths(dict(document)):
            gone, came = changed_lines(document, Set(at, "something else"))
            assert (len(gone), len(came)) == (1, 1), (path, at)


def test_every_json_takes_and_gives_keys_without_being_reformatted():
    for path in JSONS:
        document = read(path)
        for key, value in document.items():
            gone, came = changed_lines(document, Set("new_key", {"a": 1}, after=key))
            assert len(came) - len(gone) == 3 and len(gone) <= 1, (path, key)
            gone, came = changed_lines(document, Remove((key,)))
            key_span, span = document.key_span((key,)), document.span((key,))
            assert key_span is not None and span is not None
            assert len(gone) - len(came) == span.end_line - key_span.line + 1, (path, key)
            assert len(came) <= 1
            if isinstance(value, dict):
                gone, came = changed_lines(document, Set((key, "new_key"), 1))
                assert (len(gone), len(came)) == (1, 2), (path, key)
