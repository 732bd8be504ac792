import pytest

from advisor.errors import InputError
from advisor.report import FORMATS, render_check, render_error

from .samples import FITS


def test_an_error_says_what_where_and_what_to_do():
    error = InputError("`sequence_len` is `many`, not a number", "a.yaml", 3, 15, "write a number")
    assert render_error(error).splitlines() == [
        "error: `sequence_len` is `many`, not a number",
        "  --> a.yaml:3:15",
        "   = help: write a number",
    ]


@pytest.mark.parametrize(("line", "place"), [(0, "a.yaml"), (7, "a.yaml:7")])
def test_a_place_may_be_a_line_or_a_whole_file(line: int, place: str):
    assert render_error(InputError("m", "a.yaml", line)).splitlines() == ["error: m", f"  --> {place}"]


def test_an_error_without_place_is_one_line():
    assert render_error(InputError("unknown GPU `b9000`")) == "error: unknown GPU `b9000`"


def test_an_error_is_red_on_a_terminal_and_wrapped():
    shown = render_error(InputError("word " * 40), color=True)
    assert shown.startswith("\x1b[1;31merror: \x1b[0mword word")
    assert len(shown.splitlines()) == 3


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_is_there(format_: str):
    assert isinstance(render_check([FITS], format_), str)


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="choose one of full, concise"):
        render_check([FITS], "xml")
