"""What to type so that the edits of an answer are written."""

from collections.abc import Iterator
from shlex import join, split

from advisor.engine.answer import Answer


def to_write_lines(answer: Answer, width: int) -> Iterator[str]:
    """``To write the edits:`` with the whole command of the option to take; nothing where it has none."""
    chosen = answer.recommended
    if chosen is not None and chosen.command is not None:
        yield "To write the edits:" if chosen.letter != "C" else "To see it there:"
        yield from _typed(chosen.command, width)


def _typed(command: str, width: int) -> Iterator[str]:
    """A command as it may be pasted, on as many lines as it takes."""
    line = " "
    for word in split(command):
        if len(f"{line} {join([word])}") > width - len(" \\"):
            yield line + " \\"
            line = " " * 3
        line += f" {join([word])}"
    yield line
