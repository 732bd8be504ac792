from advisor.documents import Directive, parse


def directives(text: str) -> tuple[Directive, ...]:
    return parse(text.encode(), "c.yaml", "yaml").directives


def test_gpus_take_the_rest_of_the_line():
    (found,) = directives("# advisor: gpus=8x a100-80gb host=1TiB\r\na: 1\r\n")
    assert found == Directive("gpus", "8x a100-80gb host=1TiB", "", 1, True)


def test_ignores_have_ids_and_a_reason():
    found = directives("#advisor: file-ignore[a]\na: 1 # advisor: ignore[rule-id, other-rule] known bug\n")
    assert found == (
        Directive("file-ignore", "a", "", 1, True),
        Directive("ignore", "rule-id, other-rule", "known bug", 2, False),
    )


def test_only_comments_count():
    text = """\
a: "x # advisor: ignore[a] in quotes"
b: |  # advisor: ignore[b] on the header
  # advisor: ignore[c] in the text
c: 'two
  # advisor: ignore[d]'
d: x#advisor:ignore[e]
e: # advisor: ignore[f] empty
# told # advisor: ignore[g] behind another
"""
    assert [found.argument for found in directives(text)] == ["b", "f", "g"]


def test_a_file_of_comments_has_directives():
    assert [found.name for found in directives("# advisor: gpus=h100\n")] == ["gpus"]


def test_what_is_misspelt_is_handed_back():
    for body in (
        "ignore",
        "ignore[",
        "ignore[]",
        "ignore a",
        "ignored[a]",
        "gpus",
        "gpus=",
        "",
        "fileignore[a] x",
    ):
        (found,) = directives(f"a: 1 # advisor: {body}\n")
        assert (found.name, found.argument) == ("malformed", body)


def test_json_has_none():
    assert parse(b'{"a": " # advisor: gpus=x"}', "c.json", "json").directives == ()
