"""What the terminal is: colours, columns, block characters."""

import os
import sys
from typing import Any

from advisor.report.style import Style
from advisor.streams import is_terminal


def colored(stream: Any) -> bool:
    """NO_COLOR and FORCE_COLOR, if they are not empty, else whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def width() -> int:
    """Columns to keep to: the terminal's, between 60 and 100."""
    if not is_terminal(sys.stdout):
        return 80
    import shutil

    return min(100, max(60, shutil.get_terminal_size((80, 24)).columns))


def own_style() -> Style:
    """Of what is printed on standard output."""
    return Style(colored(sys.stdout), width(), draws(sys.stdout))


def draws(stream: Any) -> bool:
    """Whether the stream can show block characters."""
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") in {"utf8", "utf16"}
