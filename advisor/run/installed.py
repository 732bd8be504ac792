"""The stack that is installed beside the advisor, for ``--stack installed`` and the launch hooks."""

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from advisor.run.stack import Stack

PACKAGES = ("torch", "transformers", "peft", "accelerate", "deepspeed", "bitsandbytes")


def installed_stack() -> Stack:
    """The default stack with the versions found; what is not installed keeps its default."""
    return replace(Stack(), **installed_versions())


def installed_versions() -> dict[str, str]:
    """The versions of what a stack is made of, as far as it is installed."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
