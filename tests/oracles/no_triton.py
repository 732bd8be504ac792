# pyright: basic
"""Triton whose kernels launch nothing, so that what a fused layer allocates and keeps can be traced."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock


class Kernel:
    """What ``triton.jit`` gives: launched over a grid, it does nothing."""

    def __getitem__(self, _grid: object) -> Any:
        return lambda *_arguments, **_options: None


class Blank(ModuleType):
    """A module in which every name exists."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``triton`` and everything below it."""

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> Any:
        inside = fullname == "triton" or fullname.startswith("triton.")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if inside else None

    def create_module(self, spec: Any) -> ModuleType:
        return triton() if spec.name == "triton" else Blank(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


def triton() -> Blank:
    """The top module, with the few functions that are called on the host."""
    made: Any = Blank("triton")
    made.__version__ = "3.5.0"
    made.jit = lambda function=None, **_options: Kernel() if function else lambda _function: Kernel()
    made.autotune = made.heuristics = lambda *_arguments, **_options: lambda kernel: kernel
    made.cdiv = lambda a, b: -(-a // b)
    made.next_power_of_2 = lambda n: 1 << (n - 1).bit_length()
    return made


@contextmanager
def without_triton() -> Iterator[None]:
    """Imports inside of the block see the blank Triton; afterwards it is gone again."""
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name == "triton" or name.startswith("triton.")]:
            del sys.modules[name]
