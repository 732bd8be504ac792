"""JSON in pieces, so that the report of many files need not be in memory as a whole."""

import json
from collections.abc import Iterable, Iterator, Mapping

from advisor.util import STEERING

ESCAPED = {code: f"\\u{code:04x}" for code in STEERING if code > 0x1F}
"""JSON's own escapes leave these as they are. They stand inside strings alone."""


def dumped(value: object) -> str:
    """Indented, in UTF-8; what could steer a terminal is escaped, and so are the bytes of names that are not UTF-8."""
    return json.dumps(value, indent=2, ensure_ascii=False).translate(ESCAPED)


def streamed(frame: object, lists: Mapping[str, Iterable[object]]) -> Iterator[str]:
    """The text of ``frame``, in whose lists a name stands for the items of that name, in the order of ``lists``."""
    rest = dumped(frame)
    for name, items in lists.items():
        lead, rest = rest.split(f'"{name}"', 1)
        margin = lead[lead.rindex("\n") :]
        empty = True
        for item in items:
            yield (lead if empty else f",{margin}") + dumped(item).replace("\n", margin)
            empty = False
        if empty:
            yield lead.rstrip()
            rest = rest.lstrip()
    yield rest
