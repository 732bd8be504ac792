"""What goes wrong with input, said once and clearly."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias


class InputError(Exception):
    """Input that cannot be used: what is wrong, where, and what to do about it.

    ``line`` and ``column`` are 1-based; 0 means that the place is the whole file. ``note``: said, but no failure.
    """

    def __init__(
        self, message: str, file: str = "", line: int = 0, column: int = 0, remedy: str = "", *, note: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.remedy = remedy
        self.note = note

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}" + (f":{self.column}" if self.column else "")
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}; {self.remedy}" if self.remedy else text


Fault: TypeAlias = Callable[[InputError], None]
"""Hears of input that cannot be used; where it raises nothing, the rest goes on without."""


def stop(error: InputError) -> None:
    """The usual end."""
    raise error


@contextmanager
def going_on(fault: Fault) -> Generator[None]:
    """Hands what is raised in here to ``fault``."""
    try:
        yield
    except InputError as error:
        fault(error)
