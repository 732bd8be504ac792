import json
from typing import Any

import pytest

from advisor.report import FORMATS, check_pieces, render_check
from advisor.report.as_json import streamed

from .samples import DOES_NOT_FIT, FITS, LINT, ROOM


@pytest.mark.parametrize("items", [[], [1], [{"a": [1, {}]}, "two\nlines é", []], ["<b>", '"<b>"']])
def test_pieces_are_what_one_dump_would_be(items: list[Any]):
    frame = {"text": '"<a>" and <b>', "x": {"first": ["<a>"], "k": 1}, "second": ["<b>"]}
    whole = {"text": frame["text"], "x": {"first": items, "k": 1}, "second": [*items, 3]}
    text = "".join(streamed(frame, {"<a>": items, "<b>": [*items, 3]}))
    assert text == json.dumps(whole, indent=2, ensure_ascii=False)


@pytest.mark.parametrize("name", FORMATS)
def test_the_pieces_of_a_format_make_its_text(name: str):
    for reports in ([], [FITS], [FITS, DOES_NOT_FIT, LINT, ROOM]):
        assert "".join(check_pieces(reports, name)) == render_check(reports, name)


def test_json_comes_a_run_at_a_time():
    assert len(list(check_pieces([FITS, LINT, ROOM], "json"))) == 4
