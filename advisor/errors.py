"""What goes wrong with input, said once and clearly."""

from dataclasses import dataclass


@dataclass
class InputError(Exception):
    """Input that cannot be used: what is wrong, where, and what to do about it.

    ``line`` and ``column`` are 1-based; 0 means that the place is the whole file. ``note``: said, but no failure.
    """

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    remedy: str = ""
    note: bool = False

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}" + (f":{self.column}" if self.column else "")
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}; {self.remedy}" if self.remedy else text
