"""What the terminal is: colours, columns, block characters."""

import os
import sys
from typing import Any

from advisor.report.style import Style
from advisor.streams import is_terminal

NARROWEST, USUAL, WIDEST = 60, 80, 120
"""Columns: in fewer no screen is read, in more no line is."""
OFF = {"", "0"}
"""A variable with one of these values asks for nothing."""


def colored(stream: Any) -> bool:
    """What the user's environment asks for, else whether it is a terminal that can."""
    asked = asked_for()
    return is_terminal(stream) if asked is None else asked


def asked_for() -> bool | None:
    """Whether the environment wants colours or not; None if it says nothing.

    NO_COLOR goes first (no-color.org), then FORCE_COLOR and CLICOLOR_FORCE, then CLICOLOR=0 (bixense.com/clicolors) and
    TERM=dumb.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in OFF for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM") == "dumb":
        return False
    return None


def width() -> int:
    """Columns to keep to: ``COLUMNS``, else the terminal's, from ``NARROWEST`` to ``WIDEST``; 80 where neither is."""
    stated = os.environ.get("COLUMNS", "")
    if not is_terminal(sys.stdout) and not (stated.isdecimal() and int(stated)):
        return USUAL
    import shutil

    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size((USUAL, 24)).columns))


def own_style() -> Style:
    """Of what is printed on standard output."""
    return Style(colored(sys.stdout), width(), draws(sys.stdout))


def draws(stream: Any) -> bool:
    """Whether the stream can show block characters."""
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") in {"utf8", "utf16"}
