"""Replacements of pieces of a text, gathered in any order, in the end one after the other without overlap."""

from dataclasses import field

from advisor.record import record


@record(eq=False)
class Splice:
    """Characters ``start`` to ``end`` give way to ``text``."""

    start: int
    end: int
    text: str


@record(eq=False, frozen=False)
class Splices:
    """What is to happen to a text."""

    pieces: list[Splice] = field(default_factory=list[Splice])

    def insert(self, at: int, text: str) -> None:
        """New text before the character at ``at``."""
        self.pieces.append(Splice(at, at, text))

    def delete(self, start: int, end: int) -> None:
        """Take characters out."""
        self.pieces.append(Splice(start, end, ""))

    def replace(self, start: int, end: int, text: str) -> None:
        """Other text in place of characters."""
        self.pieces.append(Splice(start, end, text))

    def settled(self, text: str) -> list[Splice]:
        """In order, touching ones made one, each cut down to what differs."""
        joined: list[Splice] = []
        for piece in sorted(self.pieces, key=lambda piece: (piece.start, piece.end > piece.start)):
            last = joined[-1] if joined else None
            if last is not None and piece.start <= last.end:
                joined[-1] = Splice(last.start, max(last.end, piece.end), last.text + piece.text)
            else:
                joined.append(piece)
        trimmed = [_trimmed(piece, text) for piece in joined]
        return [piece for piece in trimmed if piece.end > piece.start or piece.text]


def _trimmed(piece: Splice, text: str) -> Splice:
    start, end, new = piece.start, piece.end, piece.text
    while start < end and new and text[start] == new[0]:
        start, new = start + 1, new[1:]
    while start < end and new and text[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    return Splice(start, end, new)


def spliced(text: str, splices: list[Splice]) -> str:
    """The text with all of them done."""
    parts: list[str] = []
    done = 0
    for piece in splices:
        parts += [text[done : piece.start], piece.text]
        done = piece.end
    return "".join([*parts, text[done:]])
