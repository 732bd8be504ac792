"""Plain values: what kind they are, bytes as GiB for people."""

from collections.abc import Mapping
from math import isqrt
from typing import Any, TypeGuard


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a mapping, of whatever."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list, of whatever."""
    return isinstance(value, list)


def divisors(number: int) -> list[int]:
    """All divisors of a positive number, smallest first."""
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


GIB = 1 << 30


def gib(bytes_: int) -> str:
    """``42.1 GiB``."""
    return f"{bytes_ / GIB:.1f} GiB"
