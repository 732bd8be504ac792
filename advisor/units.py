"""Bytes at the edge: GiB for people."""

GIB = 1 << 30


def gib(bytes_: int) -> str:
    """``42.1 GiB``."""
    return f"{bytes_ / GIB:.1f} GiB"
