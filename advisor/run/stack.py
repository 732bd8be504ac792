"""The versions and conditions that facts depend on. The default is what axolotl 0.19.0 pins."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, get_args

from advisor.errors import InputError
from advisor.record import record, replace
from advisor.util import regex

Trainer = Literal["axolotl", "hf-trainer", "trl-sft", "HF"]
BaseDtype = Literal["float32", "bfloat16", "float16"]
Padding = Literal["full", "packed", "longest"]
VERSION = r"\s*(?:[<>=!~]=?=?\s*)?v?\d+(?:\.(?:\d+|\*))*(?:[-.+_]?[A-Za-z0-9]+)*\s*"
VERSIONS = rf"^{VERSION}(?:,{VERSION})*$"
"""One version or specifiers with commas between them, as pip takes them."""


@record(eq=False)
class Stack:
    """Library versions (``4.48.1``, or a range such as ``>=0.18.6,<0.19``) and the trainer's habits.

    ``zero_init``: the model is built under ``zero.Init`` with ZeRO-3. ``amp``: bf16 autocast around the forward;
    ``base_dtype``: the dtype in which weights are loaded. ``prepare_kbit``: PEFT's upcast of what is not quantized.
    ``padding``: ``full`` rows, ``packed``, or ``longest`` (token counts are then upper bounds). None: as the trainer
    does. ``xielu``: whether the package with Apertus' fused activation is installed. ``cut_cross_entropy``: whether
    axolotl's fork of it is; None where that is not known. ``ring_flash_attn``: likewise, for context parallelism.
    """

    axolotl: str = "0.19.0"
    torch: str = "2.13.0"
    transformers: str = "5.16.1"
    peft: str = "0.20.0"
    accelerate: str = "1.13.0"
    deepspeed: str = "0.18.9"
    bitsandbytes: str = "0.50.2"
    trainer: Trainer = "axolotl"
    zero_init: bool = True
    amp: bool | None = None
    base_dtype: BaseDtype | None = None
    prepare_kbit: bool | None = None
    padding: Padding | None = None
    expandable_segments: bool | None = None
    xielu: bool = False
    cut_cross_entropy: bool | None = None
    ring_flash_attn: bool | None = None

    def at_least(self, package: str, version: str) -> bool:
        """Whether ``package`` is ``version`` or newer; a range counts as its lower bound."""
        return release(getattr(self, package)) >= release(version)


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, ...]:
    """``4.48.1`` -> (4, 48, 1); of a range, its first version."""
    first = version.split(",")[0].lstrip("<>=~! ")
    numbers = [part for part in first.replace("+", ".").split(".") if part.isdecimal()]
    return tuple(int(part) for part in numbers[:3])


def read_stack(settings: Mapping[str, object] | None) -> Stack:
    """The default stack with ``settings`` over it; an unknown key or value is an ``InputError``."""
    said = dict(settings or {})
    unknown = sorted(set(said) - set(KINDS))
    if unknown:
        raise InputError(f"unknown key `{unknown[0]}` in stack", remedy=f"known keys: {', '.join(sorted(KINDS))}")
    for key, value in said.items():
        if not is_allowed(key, value):
            raise InputError(f"`{key}` is `{value}` in stack", remedy=f"write {expected(key)}")
    return replace(Stack(), **said)  # pyright: ignore[reportArgumentType]


KINDS: Mapping[str, Any] = dict(Stack.__annotations__)


def is_allowed(key: str, value: object) -> bool:
    """Whether a field of ``Stack`` may have this value."""
    kinds, words = choices(KINDS[key])
    if isinstance(value, str) and str in kinds:
        return re.match(VERSIONS, value) is not None
    return type(value) in kinds or (isinstance(value, str) and value in words)


def expected(key: str) -> str:
    """What a field of ``Stack`` may be, for people."""
    kinds, words = choices(KINDS[key])
    if words:
        return " or ".join([", ".join(words[:-1]), words[-1]])
    return "a version such as 2.13.0, or a range such as >=0.18.6,<0.19" if str in kinds else "true or false"


def choices(kind: Any) -> tuple[tuple[type, ...], tuple[str, ...]]:
    """The classes and the literal words that an annotation allows."""
    if isinstance(kind, type):
        return (kind,), ()
    found = [choices(part) if not isinstance(part, str) else ((), (part,)) for part in get_args(kind)]
    return tuple(one for kinds, _ in found for one in kinds), tuple(word for _, words in found for word in words)


PACKAGES = ("axolotl", "torch", "transformers", "peft", "accelerate", "deepspeed", "bitsandbytes")

OPTIONAL = ("cut_cross_entropy", "ring_flash_attn")
"""What axolotl does not install by itself."""

INSTALLED = regex(rf"({'|'.join(PACKAGES)})(?:-(\d[^-]*))?(?:-py[\d.]+)?\.(?:dist-info|egg-info)", re.IGNORECASE)


def installed_versions() -> dict[str, str]:
    """The versions of what a stack is made of, as far as it is installed.

    By the names of folders, where they have it: reading the metadata takes a fifth of the CPU time of a launch.
    """
    names: dict[str, str] = {}
    for match in filter(None, map(INSTALLED.fullmatch, importable())):
        package = match[1].lower()
        if package not in names:
            names[package] = match[2] or _from_metadata(package)
    return {package: names[package] for package in PACKAGES if names.get(package)}


def installed_stack() -> dict[str, object]:
    """The versions that are installed, and next to axolotl which of the packages that steps may need are."""
    found = installed_versions()
    there = set(importable()) if "axolotl" in found else set[str]()
    return {**found, **({package: package in there for package in OPTIONAL} if there else {})}


def importable() -> Iterator[str]:
    """What lies in the folders that modules are imported from."""
    for folder in sys.path:
        with suppress(OSError):
            yield from os.listdir(folder or ".")


def _from_metadata(package: str) -> str:
    """The version of what is used from its checkout; empty if that cannot be read."""
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError):
        return version(package)
    return ""
