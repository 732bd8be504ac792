"""The versions and conditions that facts depend on. The default is what axolotl 0.19.0 pins."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Literal

from advisor.errors import InputError
from advisor.record import record

Trainer = Literal["axolotl", "hf-trainer", "trl-sft", "HF"]


@record(eq=False)
class Stack:
    """Library versions (``4.48.1``, or a range such as ``>=0.18.6,<0.19``) and the trainer's habits.

    ``zero_init``: the model is built under ``zero.Init`` with ZeRO-3. ``amp``: bf16 autocast around the forward;
    ``base_dtype``: the dtype in which weights are loaded. ``prepare_kbit``: PEFT's upcast of what is not quantized.
    ``padding``: ``full`` rows, ``packed``, or ``longest`` (token counts are then upper bounds). None: as the trainer
    does.
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
    base_dtype: str | None = None
    prepare_kbit: bool | None = None
    padding: str | None = None
    expandable_segments: bool | None = None

    def at_least(self, package: str, version: str) -> bool:
        """Whether ``package`` is ``version`` or newer; a range counts as its lower bound."""
        return release(getattr(self, package)) >= release(version)


STACK = {item.name: item.type for item in fields(Stack)}
"""The fields with their types."""


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, ...]:
    """``4.48.1`` -> (4, 48, 1); of a range, its first version."""
    first = version.split(",")[0].lstrip("<>=~! ")
    numbers = [part for part in first.replace("+", ".").split(".") if part.isdecimal()]
    return tuple(int(part) for part in numbers[:3])


def read_stack(settings: Mapping[str, object] | None) -> Stack:
    """The default stack with ``settings`` over it; an unknown key is an ``InputError``."""
    known = {item.name for item in fields(Stack)}
    unknown = sorted(set(settings or {}) - known)
    if unknown:
        raise InputError(f"unknown key `{unknown[0]}` in stack", remedy=f"known keys: {', '.join(sorted(known))}")
    return replace(Stack(), **dict(settings or {}))  # pyright: ignore[reportArgumentType]


PACKAGES = ("axolotl", "torch", "transformers", "peft", "accelerate", "deepspeed", "bitsandbytes")


def installed_versions() -> dict[str, str]:
    """The versions of what a stack is made of, as far as it is installed."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
