"""Which stack a run will have: what is stated, over what is installed, over the settings, over axolotl's pins."""

from collections.abc import Mapping

from advisor.run.stack import Stack, installed_stack, read_stack

WORDS = {"true": True, "false": False}


def stack_for(
    stated: str | Mapping[str, object] | None, settings: Mapping[str, object], *, here: bool = False
) -> Stack:
    """The stack; ``here`` or ``stated="installed"`` take the versions that are installed with the advisor."""
    installed = installed_stack() if here or stated == "installed" else {}
    own = {} if stated is None or stated == "installed" else stated if isinstance(stated, Mapping) else parsed(stated)
    return read_stack({**settings, **installed, **own})


def parsed(text: str) -> dict[str, object]:
    """``torch=2.9.0,trainer=trl-sft`` as a mapping."""
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    return {key.strip().replace("-", "_"): WORDS.get(value.strip().lower(), value.strip()) for key, _, value in pairs}
