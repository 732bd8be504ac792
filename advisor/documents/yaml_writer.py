"""Values -> YAML text that the safe loader reads back as exactly those values."""

import datetime
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from advisor.documents.changes import PatchError
from advisor.documents.yaml_scalars import STR, implicit_tag
from advisor.record import record
from advisor.util import regex

_PLAIN = regex(r"(?![-?:](?:\s|$))(?![,\[\]{}#&*!|>'\"%@`=])(?!---|\.\.\.)\S")
_EXPONENT, _DECIMAL = regex(r"[-+]?[\d.]+[eE][-+]?\d+"), regex(r"[-+]?\d*\.\d+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@record(eq=False)
class Style:
    """How a file indents: blanks a level, and blanks before the dash of a list below its key."""

    step: int = 2
    dash: int = 2


def scalar(value: Any, *, flow: bool = False, quote: str = "", like: str = "") -> str:
    """One line for one scalar, quoted only where it would load as something else or ``quote`` asks for it.

    ``like``: the text before, whose notation a float keeps.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return _integer(value)
        case float():
            return _float(value, like)
        case str():
            return _string(value, flow, quote)
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date():
            return value.isoformat()
        case _:
            raise PatchError(f"a value of type {type(value).__name__} cannot be written as YAML")


def _integer(value: int) -> str:
    try:
        return str(int(value))
    except ValueError as error:
        raise PatchError("an integer of more than 4300 digits cannot be written") from error


def _float(value: float, like: str = "") -> str:
    """YAML 1.1 asks for a point in every float: ``1.0e-05``; next to ``2e-5`` it is ``1.0e-5``."""
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(float(value))
    if _EXPONENT.fullmatch(like) or _DECIMAL.fullmatch(like):
        return _in_notation(text, exponent="e" in like.lower())
    return text if "." in text else text.replace("e", ".0e")


def _in_notation(text: str, *, exponent: bool) -> str:
    """A float's digits as ``2.0e-4``, of which YAML 1.1 asks for point and sign, or as ``0.0002``."""
    from decimal import Decimal

    value = Decimal(text)
    if not exponent:
        plain = f"{value:f}"
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = value.as_tuple()
    rest = "".join(map(str, digits[1:])).rstrip("0") or "0"
    return f"{'-' * sign}{digits[0]}.{rest}e{value.adjusted():+d}"


def _string(value: str, flow: bool, quote: str) -> str:
    if not quote and _is_plain(value, flow):
        return value
    single = quote == "'" or (not quote and ('"' in value or "\\" in value))
    if single and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _is_plain(value: str, flow: bool) -> bool:
    if not _PLAIN.match(value) or not value.isprintable() or value[-1] in " :" or implicit_tag(value) != STR:
        return False
    return ": " not in value and " #" not in value and not (flow and re.search(r"[,\[\]{}:?#]", value))


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise PatchError("half a surrogate pair cannot be written as UTF-8")
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def inline(value: Any) -> str:
    """Flow style, on one line."""
    match value:
        case Mapping():
            entries = cast("Mapping[Any, Any]", value).items()
            return "{" + ", ".join(f"{scalar(key, flow=True)}: {inline(item)}" for key, item in entries) + "}"
        case list():
            return "[" + ", ".join(map(inline, cast("list[Any]", value))) + "]"
        case _:
            return scalar(value, flow=True)


def is_block(value: Any) -> bool:
    """Whether a value takes lines of its own: a collection that holds something."""
    return isinstance(value, (Mapping, list)) and bool(cast("list[Any]", value))


def block(value: Any, indent: int, style: Style) -> list[str]:
    """The lines of a non-empty collection at ``indent`` blanks."""
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            lines += entry(key, item, indent, style)
    else:
        for item in cast("list[Any]", value):
            lines += list_item(item, indent, style)
    return lines


def entry(key: Any, value: Any, indent: int, style: Style) -> list[str]:
    """The lines of one key and its value."""
    head = " " * indent + scalar(key) + ":"
    if not is_block(value):
        return [f"{head} {scalar_or_empty(value)}"]
    inner = indent + (style.dash if isinstance(value, list) else style.step)
    return [head, *block(cast("Any", value), inner, style)]


def list_item(value: Any, indent: int, style: Style) -> list[str]:
    """The lines of one item with its dash."""
    if not is_block(value):
        return [" " * indent + "- " + scalar_or_empty(value)]
    first, *rest = block(value, indent + 2, style)
    return [" " * indent + "- " + first[indent + 2 :], *rest]


def scalar_or_empty(value: Any, like: str = "") -> str:
    """A scalar, or an empty collection as ``{}`` or ``[]``; ``like`` as of ``scalar``."""
    match value:
        case Mapping():
            return "{}"
        case list():
            return "[]"
        case _:
            return scalar(value, like=like)
