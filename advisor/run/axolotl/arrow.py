"""How long the lists of a column are, read from an Arrow stream with the standard library alone.

Only what is asked for is read: the messages' metadata (FlatBuffers) and one buffer of offsets a record batch. The
format: arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format, its tables Message.fbs and Schema.fbs.
"""

import mmap
import os
import struct
from array import array
from collections.abc import Iterator
from operator import sub

CONTINUES = 0xFFFFFFFF
SCHEMA, RECORD_BATCH = 1, 3
LIST, LARGE_LIST = 12, 21
BUFFERS = {1: 0, 4: 3, 5: 3, 13: 1, 16: 1, 19: 3, 20: 3, **dict.fromkeys((2, 3, *range(6, 13), 15, 17, 18, 21), 2)}
"""Buffers of a field by its type, without those of its children: of validity, offsets and data those that it has."""
MOST_ROWS = 20_000_000
"""Of a file; beyond that nobody wants to wait."""
MOST_DEPTH = 32


class Table:
    """A FlatBuffers table: a signed offset back to its vtable, which has an offset for each slot, 0 if unset."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self.data, self.at = data, at
        self.slots = at - self.number("i", at)
        self.size = self.number("H", self.slots)

    def number(self, kind: str, at: int) -> int:
        """A number in the file."""
        return int(struct.unpack_from(f"<{kind}", self.data, at)[0])

    def place(self, slot: int) -> int:
        """Where a slot's value lies; 0 if it is unset."""
        entry = 4 + 2 * slot
        offset = self.number("H", self.slots + entry) if entry < self.size else 0
        return self.at + offset if offset else 0

    def scalar(self, slot: int, kind: str) -> int:
        """The number in a slot."""
        place = self.place(slot)
        return self.number(kind, place) if place else 0

    def table(self, slot: int) -> "Table":
        """The table in a slot."""
        place = self.place(slot)
        return Table(self.data, place + self.number("I", place))

    def vector(self, slot: int) -> tuple[int, int]:
        """Where a vector begins, and how many items it has."""
        place = self.place(slot)
        if not place:
            return 0, 0
        at = place + self.number("I", place)
        return at + 4, self.number("I", at)

    def tables(self, slot: int) -> Iterator["Table"]:
        """The tables of a vector."""
        at, count = self.vector(slot)
        return (Table(self.data, place + self.number("I", place)) for place in range(at, at + 4 * count, 4))

    def text(self, slot: int) -> str:
        """The text in a slot."""
        at, length = self.vector(slot)
        return self.data[at : at + length].decode()


def longest_list(file: str, column: str) -> int:
    """The length of a column's longest list. ``ValueError``: the file is no such stream; ``OSError``: it is none."""
    if not os.path.isfile(file):
        raise OSError(f"{file} is not a file")
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _longest_in(data, column)
        except (struct.error, IndexError, RecursionError) as error:
            raise ValueError(f"{file} is not an Arrow stream") from error


def _longest_in(data: mmap.mmap, column: str) -> int:
    """The same of a stream."""
    offsets: tuple[int, str] | None = None
    longest = rows = 0
    for header, kind, body in messages(data):
        if kind == SCHEMA:
            offsets = _buffer_of(header, column)
        elif kind == RECORD_BATCH and offsets is not None:
            rows += header.scalar(0, "q")
            if rows > MOST_ROWS or header.place(3):
                raise ValueError("too long, or compressed")
            longest = max(longest, _longest_of(header, body, *offsets))
    if offsets is None:
        raise ValueError("no schema")
    return longest


def messages(data: mmap.mmap) -> Iterator[tuple[Table, int, int]]:
    """Each message's header, its kind, and where its body begins."""
    at = 0
    while at + 8 <= len(data):
        marker, length = struct.unpack_from("<II", data, at)
        if marker != CONTINUES or length == 0:
            return
        message = Table(data, at + 8 + struct.unpack_from("<I", data, at + 8)[0])
        body = at + 8 + length
        yield message.table(2), message.scalar(1, "B"), body
        at = body + message.scalar(3, "q")
        if at < body:
            raise ValueError("a message of a negative length")


def _buffer_of(schema: Table, column: str) -> tuple[int, str]:
    """Which buffer of a record batch has the offsets of a column's lists, and the type of an offset."""
    before = 0
    for field in schema.tables(1):
        kind = field.scalar(2, "B")
        if field.text(0) == column:
            if kind not in (LIST, LARGE_LIST):
                raise ValueError(f"{column} has no lists")
            return before + 1, "i" if kind == LIST else "q"
        before += buffers(field, 0)
    raise ValueError(f"no {column}")


def buffers(field: Table, depth: int) -> int:
    """The buffers of a field and of its children."""
    kind = field.scalar(2, "B")
    if field.place(4) or kind not in BUFFERS or depth > MOST_DEPTH:
        raise ValueError(f"a column of type {kind}")
    return BUFFERS[kind] + sum(buffers(child, depth + 1) for child in field.tables(5))


def _longest_of(batch: Table, body: int, index: int, kind: str) -> int:
    """The longest list of a record batch."""
    count = batch.scalar(0, "q")
    at, there = batch.vector(2)
    if index >= there or count <= 0:
        return 0
    offset, length = struct.unpack_from("<qq", batch.data, at + 16 * index)
    ends: array[int] = array(kind)
    needed = (count + 1) * ends.itemsize
    start = body + offset
    if not 0 <= body <= start <= start + needed <= len(batch.data) or length < needed:
        raise ValueError("offsets beyond the file")
    ends.frombytes(batch.data[start : start + needed])
    return max(map(sub, ends[1:], ends))
