import json

import pytest

from advisor.documents import Change, PatchError, Remove, Rename, Set, applied, parse

SOURCE = '{\n    "a": {"b": 1, "c": [1, 2]},\n    "d": {\n        "e": 1\n    }\n}\n'


def patched(text: str, *changes: Change) -> str:
    document = parse(text.encode(), "c.json", "json")
    result = document.changed(*changes).patched().decode()
    assert json.loads(result) == applied(document, changes)
    return result


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (Set("a.b", "auto"), '"b": 1', '"b": "auto"'),
        (Set("a.z", {"q": 1}), "[1, 2]", '[1, 2], "z": {"q": 1}'),
        (Set("a.z", 1, after="b"), '"b": 1,', '"b": 1, "z": 1,'),
        (Set("a.c", [1, 2, 3]), "[1, 2]", "[1, 2, 3]"),
        (Remove("a.c.0"), "[1, 2]", "[2]"),
        (Remove("a.c"), ', "c": [1, 2]', ""),
        (Set("d.f", {"q": 1}), '"e": 1', '"e": 1,\n        "f": {\n            "q": 1\n        }'),
        (Set("d.e", {"q": 1}), '"e": 1', '"e": {\n            "q": 1\n        }'),
        (Remove("d.e"), '{\n        "e": 1\n    }', "{}"),
        (Remove("d"), ',\n    "d": {\n        "e": 1\n    }', ""),
        (Remove("a"), '    "a": {"b": 1, "c": [1, 2]},\n', ""),
        (Rename("d", "é"), '"d"', '"é"'),
        (Set("x.y", 1e-05), "    }\n}", '    },\n    "x": {\n        "y": 1e-05\n    }\n}'),
    ],
)
def test_one_change_touches_one_place(change: Change, old: str, new: str):
    assert SOURCE.count(old) == 1
    assert patched(SOURCE, change) == SOURCE.replace(old, new)
    crlf = SOURCE.replace("\n", "\r\n")
    assert patched(crlf, change) == SOURCE.replace(old, new).replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        ('{"a":1,"b":2}', Set("c", 3), '{"a":1,"b":2,"c":3}'),
        ('{"a": 1, "b": 2}', Remove("a"), '{"b": 2}'),
        ('{"a": 1, "b": 2}', Remove("b"), '{"a": 1}'),
        ('{"a": 1}', Remove("a"), "{}"),
        ("{}", Set("a.b", 1), '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n\t"a": 1\n}', Set("b", [1]), '{\n\t"a": 1,\n\t"b": [\n\t\t1\n\t]\n}'),
        ('{"a": "x"}', Set("a", "\ud800"), '{"a": "\\ud800"}'),
        ('{"a" : 1}', Set("b", None), '{"a" : 1, "b" : null}'),
    ],
)
def test_the_files_own_style_is_kept(text: str, change: Change, wanted: str):
    assert patched(text, change) == wanted


def test_what_json_cannot_hold_is_refused():
    for change in (Set("a", {1, 2}), Set(("a", 1), 1), Set("a", {1: 2})):
        with pytest.raises(PatchError):
            parse(b'{"a": {"b": 1}}', "c.json", "json").changed(change).patched()
