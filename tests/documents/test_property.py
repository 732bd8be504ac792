"""Whatever the text and whatever the changes: what is written holds exactly what was meant."""

import copy
import datetime
import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.documents import Change, Document, Remove, Rename, Set, applied, parse
from advisor.documents.changes import value_at
from advisor.documents.node import same

pytestmark = pytest.mark.slow


def pieces(*texts: str) -> list[str]:
    return [piece for text in texts for piece in text.split("¦")]


KEYS = pieces("a ¦b¦base_model¦true¦on¦1¦x.y¦<<¦=¦é¦null¦k k¦a#b¦'q'¦2024-01-01¦~")
WORDS = pieces(
    "¦ ¦yes¦1e-5¦1.5¦0o7¦0x1F¦1_000¦12:30:45¦- a¦a: b¦a #b¦#¦{x}¦[¦&a¦*a¦!t¦%d¦@¦`¦|¦>¦'¦\"¦?¦? x¦:¦a:",
    "---¦...¦\n¦a\nb\n¦\t¦\\¦é¦😀¦\x07¦\x85¦\u2028¦\ufeff¦\xa0¦.inf¦-¦--¦=¦<<¦plain text¦a,b¦x]",
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(),
    st.sampled_from([0.1, 1e-05, 1e16, -0.0, 2.0, 1e22, 1e300]),
    st.sampled_from(WORDS),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=200, database=None)
fixed = settings(settings.get_profile("fixed"))

INLINE = pieces(
    "1¦true¦plain # c¦'single' # c¦\"double\"¦¦ # nothing¦[a, b]¦[]¦{}¦{x: 1, y: }¦~¦two\n    lines",
    "{x: {z: 1}, y: [1, 2]} # c¦[a,\n    b, # c\n    c]¦{\n    x: 1, # c\n    y: 2,\n    }",
    "'two\n\n    lines' # c¦|\n    text\n    more¦>-\n    folded\n    text\n¦|+\n    kept\n\n",
    "| # c\n    text\n¦!!str 1¦&anchor 5¦&other [p, q]¦&third {m: 1}¦[{x: 1}, {y: 2}]¦é 😀 # ü",
    "2024-01-01¦1e-5¦1.5e-3",
)


@st.composite
def entries(draw: Any, indent: int, level: int, prefix: str, names: list[str]) -> list[str]:
    """The lines of a block mapping."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        blank = " " * indent
        if draw(st.integers(0, 5)) == 0:
            lines += draw(st.sampled_from([[""], [f"{blank}# note"], ["", "# left"]]))
        key = f"{prefix}{number}"
        kind = draw(st.integers(0, 9))
        if kind < 6 or level > 2:
            value = draw(st.sampled_from(INLINE)).replace("\n    ", "\n" + blank + "   ")
            if "&" in value:
                anchor = f"n{key}"
                names.append(anchor)
                value = f"&{anchor} " + value.split(" ", 1)[1]
            lines.append(f"{blank}{key}: {value}" if value else f"{blank}{key}:")
        elif kind == 6 and names:
            lines.append(f"{blank}{key}: *{draw(st.sampled_from(names))} # alias")
        elif kind == 7:
            step = draw(st.sampled_from([0, 2, 4]))
            lines.append(f"{blank}{key}: # list")
            lines += draw(items(indent + step, level + 1, key, names))
        else:
            anchor = ""
            if draw(st.integers(0, 2)) == 0:
                anchor = f" &m{key}"
            lines.append(f"{blank}{key}:{anchor}")
            lines += draw(entries(indent + draw(st.sampled_from([2, 4])), level + 1, key + "_", names))
            if anchor:
                names.append(anchor[2:])
        maps = [name for name in names if name.startswith("m")]
        if maps and draw(st.integers(0, 5)) == 0:
            lines.append(f"{blank}merged{number}:\n{blank}  <<: *{draw(st.sampled_from(maps))}\n{blank}  own: 1")
    return lines


@st.composite
def items(draw: Any, indent: int, level: int, prefix: str, names: list[str]) -> list[str]:
    """The lines of a block list."""
    lines: list[str] = []
    blank = " " * indent
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 5))
        if kind < 3 or level > 2:
            value = draw(st.sampled_from([value for value in INLINE if "&" not in value])).replace(
                "\n    ", f"\n{blank}   "
            )
            lines.append(f"{blank}- {value}" if value else f"{blank}-")
        elif kind == 3:
            inner = draw(items(indent + 2, level + 1, f"{prefix}{number}", names))
            lines += [f"{blank}- {inner[0][indent + 2 :]}", *inner[1:]]
        else:
            inner = draw(entries(indent + 2, level + 1, f"{prefix}{number}_", names))
            start = next(i for i, line in enumerate(inner) if line.strip() and not line.lstrip().startswith("#"))
            lines += [f"{blank}- {inner[start][indent + 2 :]}", *inner[start + 1 :]]
        if draw(st.integers(0, 5)) == 0:
            lines.append(f"{blank}# after item")
    return lines


@st.composite
def yaml_texts(draw: Any) -> bytes:
    text = "\n".join(draw(entries(0, 0, "k", [])))
    text = (
        draw(st.sampled_from(["", "---\n", "# head\n\n"]))
        + text
        + draw(st.sampled_from(["", "\n", "\n# tail\n", "\n...\n"]))
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def pairs(value: Any) -> list[tuple[Any, Any]]:
    match value:
        case dict():
            return list(value.items())
        case list():
            return list(enumerate(value))
        case _:
            return []


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = [found for key, item in pairs(value) for found in paths_in(item, (*path, key))]
    return [path, *inside] if path else inside


def draw_change(draw: Any, held: dict[str, Any], new: Any) -> Change:
    path = draw(st.sampled_from([("a",), ("k0",), *paths_in(held)]))
    match draw(st.integers(0, 6)):
        case 0 | 1:
            return Set(path, new)
        case 2:
            return Remove(path)
        case 3 if isinstance(path[-1], str):
            return Rename(path, draw(st.sampled_from([*KEYS, "k1", "k0"])))
        case 4:
            return Set(
                (*path[:-1], draw(st.sampled_from(KEYS))),
                new,
                after=draw(st.sampled_from(["k0", "k1", None])),
            )
        case 5:
            return Set((*path, "below"), new)
        case 6 if isinstance(value_at(held, path), list):
            return Set((*path, 0), new)
        case _:
            return Remove(("absent",))


def make_changes(draw: Any, document: Document, new_values: Any) -> Document:
    for _ in range(draw(st.integers(1, 4))):
        change = draw_change(draw, dict(document.values_mapping), draw(new_values))
        before = copy.deepcopy(dict(document.values_mapping))
        try:
            expected = applied(document.values_mapping, [change])
        except Exception as error:
            assert "has no place" in str(error)
            continue
        assert same(before, dict(document.values_mapping))
        document = document.changed(change)
        assert same(dict(document.values_mapping), expected)
    return document


def edited(document: Document) -> bytes:
    """The bytes after the edits, put together the way that a reader of the JSON report would."""
    result, done = b"", 0
    for edit in document.edits():
        assert edit.start >= done
        result += document.raw[done : edit.start] + edit.text.encode()
        done = edit.end
    return result + document.raw[done:]


@fixed
@given(st.data())
def test_any_changes_of_any_yaml_are_written_exactly(data: Any):
    raw = data.draw(yaml_texts())
    document = make_changes(data.draw, parse(raw, "x.yaml", "yaml"), values)
    patched = document.patched()
    assert same(dict(parse(patched, "x.yaml", "yaml").values_mapping), dict(document.values_mapping))
    assert same(yaml.safe_load(patched) or {}, dict(document.values_mapping))
    assert edited(document) == patched


@fixed
@given(yaml_texts())
def test_any_yaml_reads_as_the_safe_loader_reads_it(raw: bytes):
    assert same(dict(parse(raw, "x.yaml", "yaml").values_mapping), yaml.safe_load(raw))


@st.composite
def json_texts(draw: Any) -> bytes:
    value = draw(st.dictionaries(st.sampled_from(["k0", "k1", *KEYS]), values, max_size=4))
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":")] if indent is None else [None]))
    text = json.dumps(value, indent=indent, separators=separators) + draw(st.sampled_from(["", "\n"]))
    return draw(st.sampled_from([text, text.replace("\n", "\r\n")])).encode()


@fixed
@given(st.data())
def test_any_changes_of_any_json_are_written_exactly(data: Any):
    raw = data.draw(json_texts())
    document = make_changes(data.draw, parse(raw, "x.json", "json"), values)
    patched = document.patched()
    assert same(json.loads(patched.decode()), dict(document.values_mapping))
    assert edited(document) == patched


@fixed
@given(values)
def test_any_value_survives_as_yaml(value: Any):
    document = parse(b"a: 1\nb: [1]\nc: 'q'\nd: \"q\"\ne:\n- x\n", "x.yaml", "yaml")
    for path in ("a", "b.0", "c", "d", "e.0", "f"):
        assert same(
            yaml.safe_load(document.changed(Set(path, value)).patched()),
            applied(document, [Set(path, value)]),
        )


def test_dates_and_infinities_survive():
    for value in (
        datetime.date(2024, 1, 2),
        datetime.datetime(2024, 1, 2, 3, 4, 5),
        math.inf,
        -math.inf,
        math.nan,
    ):
        document = parse(b"a: 1\n", "x.yaml", "yaml").changed(Set("a", value))
        assert same(document.rebased()["a"], value)
