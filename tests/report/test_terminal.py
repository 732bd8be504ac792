"""What the terminal and the environment ask for: colours, columns."""

import io
import os
import sys

import pexpect
import pytest

from advisor.report import terminal
from advisor.report.style import Style
from advisor.report.terminal import colored, width

NAMES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM")


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def silent_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "on_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"TERM": "xterm-256color"}, True, False),
        ({"NO_COLOR": ""}, True, False),
        ({"NO_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, True, False),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR": "1"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "dumb", "CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}, False, False),
    ],
)
def test_the_environment_decides_in_the_order_of_the_conventions(
    environment: dict[str, str], on_terminal: bool, in_pipe: bool, monkeypatch: pytest.MonkeyPatch
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (colored(Screen()), colored(io.StringIO())) == (on_terminal, in_pipe)


@pytest.mark.parametrize(("columns", "kept"), [("20", 60), ("60", 60), ("97", 97), ("120", 120), ("300", 120)])
def test_a_screen_has_60_to_120_columns(columns: str, kept: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(terminal.sys, "stdout", Screen())
    monkeypatch.setenv("COLUMNS", columns)
    assert width() == kept


@pytest.mark.parametrize(("columns", "kept"), [(None, 80), ("", 80), ("0", 80), ("wide", 80), ("72", 72), ("300", 120)])
def test_what_is_piped_has_80_columns_unless_stated(columns: str | None, kept: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(terminal.sys, "stdout", io.StringIO())
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert width() == kept


def test_no_line_ends_within_a_value_in_backticks_or_between_the_options_that_write():
    style = Style(width=40)
    text = "write it in one of the files as `type: chat_template` and then add --fix --unsafe-fixes"
    assert style.prose(text, indent=2) == [
        "write it in one of the files as",
        "  `type: chat_template` and then",
        "  add --fix --unsafe-fixes",
    ]
    longer = style.prose("`a value that is longer than the line that it has to go on`", "lead: ")
    assert len(longer) > 1 and all(len(line) <= 40 for line in longer)


@pytest.mark.parametrize(
    ("environment", "escapes"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_a_terminal_gets_the_colours_it_asks_for(environment: dict[str, str], escapes: bool):
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    process: pexpect.spawn[str] = pexpect.spawn(
        sys.executable, ["-m", "advisor", "rule", "fused-loss"], env=kept | environment, encoding="utf-8", timeout=20
    )
    screen = process.read()
    process.close()
    assert "fused-loss" in screen
    assert ("\x1b[" in screen) is escapes
