import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import Document, Remove, Rename, Set, Span, applied, as_path, new_document, parse, read
from advisor.errors import InputError


def of_yaml(text: str | bytes) -> Document:
    return parse(text if isinstance(text, bytes) else text.encode(), "c.yaml", "yaml")


def of_json(text: str) -> Document:
    return parse(text.encode(), "c.json", "json")


@pytest.mark.parametrize(
    "text",
    [
        "lr: 1e-5\non: yes\nn: 012\nh: 0x1F\nt: 12:30\nd: 2024-01-02\ndt: 2024-01-02 03:04:05\nf: .inf\n",
        "1: a\nnested:\n  true: x\n  2.5: y\n  null: z\n",
        "b: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3\nd:\n  <<: [{x: 5}, *b]\n",
        "a: !!str 1\nb: !!float 2\nc: !!binary aGk=\nd: !!set {x, y}\ne: !!omap [a: 1]\nf: ! 12\n",
        "=: 1\na: '<<'\nb: \"=\"\n",
        "a: |\n  x\n   y\nb: >-\n  x\n  y\nc: |+\n  k\n\n",
        "%YAML 1.1\n---\na: 1\n...\n",
    ],
)
def test_yaml_values_are_those_of_the_safe_loader(text: str):
    assert dict(of_yaml(text)) == yaml.safe_load(text)


def test_a_yaml_of_comments_holds_nothing():
    for text in ("", "# only\n", "---\n", "---\n# c\n", "\n\n"):
        assert dict(of_yaml(text)) == {}


def test_json_values_are_those_of_the_json_module():
    text = '{"a": [1, 1.0, 1e-5, NaN, -Infinity, true, null], "b": {"c": "\\u00e9\\ud83d\\ude00 \\" {,"}}'
    assert json.dumps(dict(of_json(text))) == json.dumps(json.loads(text))
    assert json.dumps(of_json(text).source.root.value) == json.dumps(json.loads(text))  # type: ignore[union-attr]


def test_the_pure_python_loader_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    text = "a: &x [1, {b: }]\nc: |\n  t\n\n# e\nd: *x\né: 😀 # c\n"
    wanted = [(of_yaml(text).span(path), of_yaml(text).at(path)) for path in ("a", "a.1.b", "c", "d", "é")]
    monkeypatch.setattr("advisor.documents.yaml_tree._Loader", yaml.SafeLoader)
    assert [(of_yaml(text).span(path), of_yaml(text).at(path)) for path in ("a", "a.1.b", "c", "d", "é")] == wanted


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: [1\n", 3, "not YAML"),
        ("a:\n\tb: 1\n", 2, "a tab in the indentation"),
        ("- 1\n", 1, "found a list"),
        ("just text\n", 1, "found a single value"),
        ("null\n", 1, "found a single value"),
        ("a: 1\n---\nb: 1\n", 2, "a second document"),
        ("a: &x\n  b: *x\n", 2, "is inside its own anchor"),
        ("a: *x\n", 1, "names an anchor that is not above it"),
        ("a: &x 1\nb: &x 2\n", 2, "defined twice"),
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", 2, "has no place in a config"),
        ("a: !secret x\n", 1, "has no place in a config"),
        ("a: 2024-13-45\n", 1, "is no timestamp"),
        ("a: 1\nb: " + "9" * 5000 + "\n", 2, "is no int"),
        ("a: !!int x\n", 1, "is no int"),
        ("a: 1\nb: \x00\n", 2, "a NUL byte"),
        ("a: 1\nb: \x07\n", 2, "control character U+0007"),
        ("? [a]\n: 1\n", 1, "a key must be a scalar"),
        ("a: =\n", 1, "where a value is expected"),
        ("a:\n  <<: 1\n", 2, "`<<` takes a mapping"),
        ("a: " + "[" * 101 + "]" * 101, 1, "nested deeper than 100"),
        ("a: " + "[" * 100_000, 1, "nested deeper than 100"),
        ("\n".join("  " * depth + "a:" for depth in range(300)), 101, "nested deeper than 100"),
    ],
)
def test_a_broken_yaml_is_told_with_its_line(text: str, line: int, words: str):
    with pytest.raises(InputError, match=r".") as caught:
        of_yaml(text)
    assert words in caught.value.message
    assert (caught.value.file, caught.value.line) == ("c.yaml", line)
    assert caught.value.remedy


def test_what_expands_without_bound_is_refused():
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    with pytest.raises(InputError, match="more than 100000 values"):
        of_yaml(bomb)
    with pytest.raises(InputError, match="larger than 10 MiB"):
        of_yaml(b"a: " + b"x" * (10 * 2**20))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n  "a": 1,\n}', 2, "a comma before the closing `}`"),
        ('{\n  "a": [1, ]\n}', 2, "a comma before the closing `]`"),
        ('{\n  // why\n  "a": 1\n}', 2, "JSON has no comments"),
        ('{\n  "a": 1 # why\n}', 2, "JSON has no comments"),
        ('{\n  "a": True\n}', 2, "`True` is Python"),
        ("{\n  'a': 1\n}", 2, "double quotes"),
        ('{"a": 1,\n "b": {"c": 1,\n "c": 2}}', 3, "duplicate key `c`, already on line 2"),
        ('{"a": 1}\n{}', 2, "more text after the end"),
        ("", 1, "the file is empty"),
        ("[1]", 1, "found a list"),
        ('{"a": "\n"}', 1, "not JSON"),
        ('{"a": ' + "[" * 101 + "]" * 101 + "}", 1, "nested deeper than 100"),
        ('{"a": ' + "[" * 100_000, 1, "nested deeper than 100"),
        ('{\n"a": ' + "9" * 5000 + "}", 2, "more than 4300 digits"),
        ('{"a": ' + "[1" + ",1" * 500_000 + "]}", 1, "more than 100000 values"),
    ],
)
def test_a_broken_json_is_told_with_its_line(text: str, line: int, words: str):
    with pytest.raises(InputError, match=r".") as caught:
        of_json(text)
    assert words in caught.value.message
    assert (caught.value.file, caught.value.line) == ("c.json", line)
    assert caught.value.remedy


def test_bytes_that_are_no_utf_8_are_told_with_their_line():
    for raw, line, words in (
        (b"a: 1\nb: \xff\n", 2, "0xff is not UTF-8"),
        ("a: 1".encode("utf-16"), 1, "UTF-16"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            of_yaml(raw)
        assert caught.value.line == line


def test_files_that_cannot_be_read_are_told(tmp_path: Path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (
        ("absent.yaml", "no such file"),
        ("", "is a folder"),
        ("loop", "cannot be read"),
        ("\0", "cannot"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            read(str(tmp_path / name))
        assert caught.value.remedy


def test_a_name_decides_the_syntax(tmp_path: Path):
    (tmp_path / "a.json").write_text('{"lr": 1e-5}')
    (tmp_path / "a.yml").write_text("lr: 1e-5")
    assert read(tmp_path / "a.json")["lr"] == 1e-5
    assert read(tmp_path / "a.yml")["lr"] == "1e-5"


def test_spans_count_bytes_and_columns_count_characters():
    raw = b"\xef\xbb\xbf" + "é: 😀x # c\r\nb:\r\n  - q\r\n".encode()
    document = of_yaml(raw)
    assert document.span("é") == Span(7, 12, 1, 4, 1, 6)
    assert raw[7:12].decode() == "😀x"
    assert document.key_span("b") == Span(18, 19, 2, 1, 2, 2)
    assert document.span("b.0") == Span(26, 27, 3, 5, 3, 6)
    assert document.key_span("b.0") is None
    assert document.text.startswith("é")


def test_spans_follow_aliases_merges_and_empty_values():
    text = "a: &x {k: 1}\nb: *x\nc:\n  <<: *x\nd:\ne:\n  f: 1\n\n  # g\nh: |\n  t\n\n\ni: 1\n"
    document = of_yaml(text)

    def piece(path: str) -> str:
        span = document.span(path)
        assert span is not None
        return text[span.start : span.end]

    assert [piece(path) for path in ("a", "a.k", "b", "b.k", "c.k")] == ["&x {k: 1}", "1", "*x", "1", "1"]
    assert piece("d") == "" and document.span("d") == Span(33, 33, 5, 3, 5, 3)
    assert (piece("e"), piece("h")) == ("f: 1", "|\n  t")
    assert document.span("nothing") is None and document.span("a.k.z") is None


def test_json_spans():
    document = of_json('{"a": {"b": [1, "é"]},\n "c": 2}')
    assert document.span("a.b.1") == Span(16, 20, 1, 17, 1, 20)
    assert document.key_span("c") == Span(25, 28, 2, 2, 2, 5)


def test_paths_are_dotted_or_literal():
    assert as_path("a.b.0") == ("a", "b", 0)
    assert as_path(("a.b", "0")) == ("a.b", "0")
    document = of_yaml("a.b: {'0': x}\nc: [1, null]\n")
    assert document.at(("a.b", 0)) == document.at(("a.b", "0")) == "x"
    assert document.has("c.1") and document.at("c.1", 5) is None
    assert not document.has("c.2") and document.at("c.2", 5) == 5 and not document.has("c.-1")


def test_applied_copies_along_the_path_alone():
    values: dict[str, Any] = {"a": {"b": [1, 2]}, "c": {"d": 1}}
    result = applied(values, [Set("a.b.0", 5), Set("a.b.2", 3), Set("x.y", 1), Remove("c.d"), Remove("no.where")])
    assert values == {"a": {"b": [1, 2]}, "c": {"d": 1}}
    assert result == {"a": {"b": [5, 2, 3]}, "c": {}, "x": {"y": 1}}
    assert applied(values, [Set("a.z", 1)])["c"] is values["c"]


def test_applied_keeps_order_where_asked():
    values = {"a": 1, "b": 2, "c": 3}
    assert list(applied(values, [Set("n", 0, after="a")])) == ["a", "n", "b", "c"]
    assert list(applied(values, [Set("n", 0, after="none")])) == ["a", "b", "c", "n"]
    assert list(applied(values, [Rename("b", "z")])) == ["a", "z", "c"]
    assert applied(values, [Rename("b", "a")]) == {"a": 2, "c": 3}


def test_a_path_through_a_scalar_is_refused():
    document = of_yaml("a: text\nb: [1]\nc:\n")
    for path in ("a.x", "b.3", "b.x"):
        with pytest.raises(InputError, match="has no place") as caught:
            document.changed(Set(path, 1))
        assert caught.value.file == "c.yaml"
    assert document.changed(Set("c.x", 1))["c"] == {"x": 1}


def test_a_document_is_a_mapping_of_its_values_after_changes():
    document = of_yaml("a: 1\nb: 2\n")
    changed = document.changed(Set("c", (1, datetime.date(2024, 1, 1)))).changed(Remove("a"))
    assert dict(changed) == {"b": 2, "c": [1, datetime.date(2024, 1, 1)]}
    assert (dict(document), len(changed), "a" in changed, changed.get("a")) == (
        {"a": 1, "b": 2},
        2,
        False,
        None,
    )
    assert changed.span("a") == document.span("a") and changed.raw == document.raw
    assert len(changed.pending) == 2 and not changed.rebased().pending


def test_a_new_json_is_written_whole():
    document = new_document("d.json", "json", {"a": {"b": (1,)}, "é": "auto"})
    text = '{\n  "a": {\n    "b": [\n      1\n    ]\n  },\n  "é": "auto"\n}\n'
    assert document.is_new and document.patched().decode() == text
    (edit,) = document.edits()
    assert (edit.start, edit.end, edit.text, edit.create) == (0, 0, text, True)
    rebased = document.changed(Set("a.b", 2)).rebased()
    assert rebased["a"] == {"b": 2} and rebased.is_new and rebased.edits() == ()
    assert not rebased.changed(Set("c", 1)).edits()[0].create


def test_a_new_yaml_is_written_whole():
    assert new_document("d.yaml", "yaml", {"a": [{"b": 1, "c": []}], "d": {}}).patched() == (
        b"a:\n  - b: 1\n    c: []\nd: {}\n"
    )
    assert new_document("d.yaml", "yaml", {}).patched() == b"{}\n"
