"""Keys that a YAML holds twice: the last one counts, as with PyYAML, and the first one is known."""

import pytest
import yaml

from advisor.documents import Change, Remove, Rename, Set, applied, parse
from advisor.documents.node import same

TWICE = """\
a: 1 # first
b:
  c: 1
  c: 2 # second
a: 2 # last
d: 3
"""


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (TWICE, {("a",): 1, ("b", "c"): 3}),
        ("a: [{x: 1, x: 2}, {x: 1}]\n", {("a", 0, "x"): 1}),
        ("a: 1\na: 2\na: 3\n", {("a",): 2}),
        ("a: 1\nb: {a: 1}\n", {}),
    ],
)
def test_the_value_is_pyyamls_and_the_overridden_key_is_known(text: str, paths: dict[tuple[object, ...], int]):
    document = parse(text.encode(), "c.yaml", "yaml")
    assert same(dict(document), yaml.safe_load(text))
    assert {path: span.line for path, span in document.overridden} == paths


def test_the_path_leads_to_the_key_that_counts():
    document = parse(TWICE.encode(), "c.yaml", "yaml")
    span, key = document.span("a"), document.key_span("b.c")
    assert span is not None and key is not None
    assert (span.line, key.line) == (5, 4)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (Set("d", 4), TWICE.replace("d: 3", "d: 4")),
        (Set("a", 5), TWICE.replace("a: 2", "a: 5")),
        (Set("b.c", 5), TWICE.replace("c: 2", "c: 5")),
        (Remove("a"), TWICE.replace("a: 1 # first\n", "").replace("a: 2 # last\n", "")),
        (Rename("a", "z"), TWICE.replace("a: ", "z: ")),
    ],
)
def test_a_change_is_made_where_it_counts(change: Change, wanted: str):
    document = parse(TWICE.encode(), "c.yaml", "yaml")
    result = document.changed(change).patched().decode()
    assert result == wanted
    assert same(yaml.safe_load(result), applied(document, [change]))
