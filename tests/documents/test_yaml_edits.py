from typing import Any

import pytest
import yaml

from advisor.documents import Change, Edit, PatchError, Remove, Rename, Set, applied, parse
from advisor.documents.node import same

SOURCE = """\
# head
a: 1 # one

plugins:
  - x.y # first
  - z
# about m
m:
  b: 2
  # note
  c: 'q' # c
empty: # e
last: 3"""


def patched(text: str, *changes: Change) -> str:
    document = parse(text.encode(), "c.yaml", "yaml")
    result = document.changed(*changes).patched().decode()
    assert same(yaml.safe_load(result) or {}, applied(document, changes))
    return result


def swap(old: str, new: str, source: str = SOURCE) -> str:
    assert source.count(old) == 1
    return source.replace(old, new)


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (Set("a", 2), "a: 1 # one", "a: 2 # one"),
        (Set("a", [1, {"x": 2}]), "a: 1 # one", "a: # one\n  - 1\n  - x: 2"),
        (Set("a", {"x": {"y": "z"}}), "a: 1 # one", "a: # one\n  x:\n    y: z"),
        (Set("m.c", "new"), "'q'", "'new'"),
        (Set("m.c", 5), "'q'", "5"),
        (Set("empty", "on"), "empty: # e", 'empty: "on" # e'),
        (Set("empty", {"x": 1}), "empty: # e", "empty: # e\n  x: 1"),
        (Set("empty.x", 1), "empty: # e", "empty: # e\n  x: 1"),
        (Set("plugins", ["x.y", "z", "new"]), "  - z", "  - z\n  - new"),
        (Set("plugins", ["x.y", "mid", "z"]), "# first", "# first\n  - mid"),
        (Set("plugins", ["new", "x.y", "z"]), "  - x.y", "  - new\n  - x.y"),
        (Set("plugins.0", "other"), "x.y", "other"),
        (Remove("plugins.0"), "  - x.y # first\n", ""),
        (Set("plugins", []), "plugins:\n  - x.y # first\n  - z", "plugins: []"),
        (Set("plugins", {"k": 1}), "  - x.y # first\n  - z", "  k: 1"),
        (Set("m.d", 4), "'q' # c", "'q' # c\n  d: 4"),
        (Set("m.d", 4, after="b"), "b: 2", "b: 2\n  d: 4"),
        (Set("n", None), "last: 3", "last: 3\nn: null"),
        (Set("n.o.p", 1), "last: 3", "last: 3\nn:\n  o:\n    p: 1"),
        (Set("n", 1, after="plugins"), "  - z", "  - z\nn: 1"),
        (Remove("a"), "a: 1 # one\n", ""),
        (Remove("m"), "m:\n  b: 2\n  # note\n  c: 'q' # c\n", ""),
        (Remove("m.b"), "  b: 2\n", ""),
        (Remove("last"), "last: 3", ""),
        (Rename("m", "mm"), "\nm:", "\nmm:"),
        (Rename("m.b", "true"), "b: 2", '"true": 2'),
        (Remove("absent"), "head", "head"),
    ],
)
def test_one_change_touches_one_place(change: Change, old: str, new: str):
    assert patched(SOURCE, change) == swap(old, new)


def test_crlf_marks_and_a_byte_order_mark_stay():
    raw = b"\xef\xbb\xbf---\r\na: \xc3\xa9\r\nb:\r\n  - 1\r\n...\r\n"
    document = parse(raw, "c.yaml", "yaml").changed(Set("a", "x"), Set("b", [1, 2]), Set("c", 1))
    assert document.patched() == b"\xef\xbb\xbf---\r\na: x\r\nb:\r\n  - 1\r\n  - 2\r\nc: 1\r\n...\r\n"
    assert document.edits()[0] == Edit("c.yaml", 11, 13, "x")


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        ("a: {x: 1, y: 2} # c\n", Set("a.z", [1, "b,c"]), 'a: {x: 1, y: 2, z: [1, "b,c"]} # c\n'),
        ("a: {x: 1, y: 2}\n", Remove("a.x"), "a: {y: 2}\n"),
        ("a: {x: 1, y: 2}\n", Remove("a.y"), "a: {x: 1}\n"),
        ("a: {x: 1,}\n", Set("a.y", 2), "a: {x: 1, y: 2,}\n"),
        ("a: {}\n", Set("a.y", 2), "a:\n  y: 2\n"),
        ("a: [x, y]\n", Set("a", ["x", "y", "z"]), "a: [x, y, z]\n"),
        ("a: [x, y, z]\n", Set("a", ["x", "z"]), "a: [x, z]\n"),
        (
            "a: [\n  x, # one\n  y # two\n]\n",
            Set("a", ["x", "y", "z"]),
            "a: [\n  x, # one\n  y, # two\n  z\n]\n",
        ),
        ("a: [\n  x, # one\n  y # two\n]\n", Remove("a.1"), "a: [\n  x # one\n]\n"),
        ("a: {b, c: }\n", Set("a.b", 1), "a: {b: 1, c: }\n"),
        ("{a: 1}\n", Set("b", 2), "{a: 1, b: 2}\n"),
    ],
)
def test_flow_style_keeps_its_style(text: str, change: Change, wanted: str):
    assert patched(text, change) == wanted


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        (
            "a:\n    b:\n        c: 1\n",
            Set("x.y", {"z": 1}),
            "a:\n    b:\n        c: 1\nx:\n    y:\n        z: 1\n",
        ),
        ("a:\n- 1\n", Set("b", [1]), "a:\n- 1\nb:\n- 1\n"),
        ("a:\n- 1\n# c\n", Set("a", [1, 2]), "a:\n- 1\n- 2\n# c\n"),
        ("a:\n- x: 1 # one\n  # about y\n  y: 2\n", Remove("a.0.x"), "a:\n- # about y\n  y: 2\n"),
        ("a:\n- x: 1\n- x: 2\n", Set("a.1.z", {"k": 1}), "a:\n- x: 1\n- x: 2\n  z:\n    k: 1\n"),
        ("a:\n  - - 1\n    - 2\n", Set("a.0", [1, 2, 3]), "a:\n  - - 1\n    - 2\n    - 3\n"),
        ("a:\n  - - 1\n    - 2\n", Remove("a.0.0"), "a:\n  - - 2\n"),
        ("a:\n  -   x\n  -\n", Set("a.1", {"k": [1]}), "a:\n  -   x\n  - k:\n      - 1\n"),
    ],
)
def test_indentation_is_the_files_own(text: str, change: Change, wanted: str):
    assert patched(text, change) == wanted


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        ("a: |\n  x\n  y\n\nb: 1\n", Set("a", "z"), "a: z\n\nb: 1\n"),
        ("a: |\n  x\n\nb: 1\n", Remove("a"), "\nb: 1\n"),
        ("a: |\n  x", Set("b", 1), "a: |-\n  x\nb: 1"),
        ("a: |+\n  x\n\n\nb: 1\n", Set("c", 1, after="a"), "a: |+\n  x\n\n\nc: 1\nb: 1\n"),
        ("a: >-\n  x\nb: 1\n", Set("a", [1]), "a:\n  - 1\nb: 1\n"),
        ("a: 'two\n\n  lines' # c\n", Set("a", 1), "a: 1 # c\n"),
    ],
)
def test_scalars_of_several_lines(text: str, change: Change, wanted: str):
    assert patched(text, change) == wanted


ANCHORED = "base: &b {x: 1, y: 2}\nu:\n  <<: *b\n  y: 3\nv: *b # v\nw: [*b]\n"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (Set("u.x", 7), swap("y: 3\n", "y: 3\n  x: 7\n", ANCHORED)),
        (Set("u.y", 7), swap("y: 3", "y: 7", ANCHORED)),
        (Set("v", 1), swap("v: *b # v", "v: 1 # v", ANCHORED)),
        (Set("v.x", 9), swap("v: *b # v", "v: # v\n  x: 9\n  y: 2", ANCHORED)),
        (Remove("u.x"), swap("  <<: *b\n", "", ANCHORED)),
        (Remove("w"), swap("w: [*b]\n", "", ANCHORED)),
        (
            Set("base.x", 5),
            "base: &b {x: 5, y: 2}\nu:\n  <<: *b\n  y: 3\n  x: 1\nv: # v\n  x: 1\n  y: 2\nw: [{x: 1, y: 2}]\n",
        ),
        (Remove("base"), "u:\n  y: 3\n  x: 1\nv: # v\n  x: 1\n  y: 2\nw: [{x: 1, y: 2}]\n"),
    ],
)
def test_a_change_never_shows_through_an_alias(change: Change, wanted: str):
    assert patched(ANCHORED, change) == wanted


MERGED = "d: &d {a: 1}\n<<: *d # keep\n   # deeper\nb: {c: 1}\n"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (Set("z", 1), MERGED + "z: 1\n"),
        (Set("b.c", 2), swap("c: 1", "c: 2", MERGED)),
        (Rename("d", "e"), swap("d: &d", "e: &d", MERGED)),
        (Remove("b"), swap("b: {c: 1}\n", "", MERGED)),
        (Set("a", 5), MERGED + "a: 5\n"),
        (Set("d.a", 5), swap("{a: 1}", "{a: 5}", MERGED) + "a: 1\n"),
        (Remove("d"), "b: {c: 1}\na: 1\n"),
    ],
)
def test_a_merge_of_an_anchor_in_the_same_mapping_stays_with_its_comment(change: Change, wanted: str):
    assert patched(MERGED, change) == wanted


def test_merges_of_several_anchors_stay():
    text = "x: &x\n  a: 1\ny: &y\n  b: 2\nmain:\n  <<: [*x, *y]  # both\n  c: 3\n<<: *y\nlast: *x\n"
    assert patched(text, Set("main.c", 4), Set("z", 1)) == swap("c: 3", "c: 4", text) + "z: 1\n"


def test_the_last_key_of_a_mapping_leaves_it_empty():
    assert patched("a:\n  b: 1 # c\nd: 2\n", Remove("a.b")) == "a: {}\nd: 2\n"
    assert patched("# x\na: 1 # one\nb: 2\n# y\n", Remove("a"), Remove("b")) == "# x\n{} # one\n# y\n"


def test_a_yaml_that_holds_nothing_can_be_filled():
    assert patched("", Set("a.b", 1)) == "a:\n  b: 1\n"
    assert patched("# c", Set("a", 1)) == "# c\na: 1\n"
    assert patched("---\n# c\n...\n", Set("a", 1)) == "---\n# c\na: 1\n...\n"


def test_changes_that_cancel_out_write_nothing():
    document = parse(SOURCE.encode(), "c.yaml", "yaml")
    changed = document.changed(Set("a", 5), Remove("m"), Set("a", 1), Set("m", {"b": 2, "c": "q"}))
    assert changed.edits() == () and changed.patched() == SOURCE.encode()


def test_renames_follow_one_another():
    changes = (Rename("m", "k"), Rename("k.b", "bb"), Set("k.bb", 7), Rename("k", "l"))
    assert patched(SOURCE, *changes) == swap("\nm:\n  b: 2", "\nl:\n  bb: 7")


def test_comments_below_a_removed_value_go_with_it_and_others_stay():
    text = "a: 1\n# above b\nb:\n  c: 1\n  # inside b\n# below b\nd: 1\n"
    assert patched(text, Remove("b")) == "a: 1\n# above b\n# below b\nd: 1\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1e-05, "1.0e-05"),
        (2e16, "2.0e+16"),
        (0.1, "0.1"),
        ("1e-5", "1e-5"),
        ("1.0e-5", '"1.0e-5"'),
        ("yes", '"yes"'),
        ("null", '"null"'),
        ("", '""'),
        ("12:30", '"12:30"'),
        ("2024-01-02", '"2024-01-02"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("http://x/y#z", "http://x/y#z"),
        ("- x", '"- x"'),
        ("-x", "-x"),
        ('say "hi"', 'say "hi"'),
        ('"x"', "'\"x\"'"),
        ("C:\\x", "C:\\x"),
        ("a\nb", '"a\\nb"'),
        (True, "true"),
        (None, "null"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_a_scalar_is_quoted_only_where_it_must_be(value: Any, written: str):
    assert patched("k: 7 # c\n", Set("k", value)) == f"k: {written} # c\n"


@pytest.mark.parametrize("value", [{1, 2}, object(), b"x", "\ud800", pytest.param(10**5000, id="huge")])
def test_what_yaml_cannot_hold_is_refused(value: Any):
    with pytest.raises(PatchError) as caught:
        parse(b"a: 1\n", "c.yaml", "yaml").changed(Set("a", value)).patched()
    assert caught.value.file == "c.yaml"


def test_explicit_keys_can_be_read_but_not_rearranged():
    document = parse(b"? a\n: 1\n? b\n: 2\n", "c.yaml", "yaml")
    assert dict(document) == {"a": 1, "b": 2}
    with pytest.raises(PatchError, match="cannot be edited"):
        document.changed(Remove("a")).patched()


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("2e-5", 0.0002, "2.0e-4"),
        ('"2e-5"', 0.0002, "2.0e-4"),
        ("2E-5", 0.000125, "1.25e-4"),
        ("5.0e-07", 0.000005, "5.0e-6"),
        ("1.0e+3", -20000.0, "-2.0e+4"),
        ("0.0000005", 0.000005, "0.000005"),
        ("0.5", 1e22, "10000000000000000000000.0"),
        ("0.00002", 0.0002, "0.0002"),
        ("2", 0.000005, "5.0e-06"),
        ("word", 0.0002, "0.0002"),
        (".inf", 0.0002, "0.0002"),
        ("2e-5", float("inf"), ".inf"),
    ],
)
def test_a_number_keeps_its_notation(old: str, value: float, new: str):
    assert patched(f"a: {old} # rate", Set("a", value)) == f"a: {new} # rate"
    assert patched(f"{{a: {old}, b: 1}}", Set("a", value)) == f"{{a: {new}, b: 1}}"
