"""What a caller may ask of a check: every option at its default when it is left out."""

from collections.abc import Mapping
from typing import cast

from advisor.engine.rule import Level
from advisor.record import record


@record(kw_only=True)
class RunOptions:
    """What the run is, where it will be, and which rules are consulted.

    ``stack`` is ``installed``, ``torch=2.9.0,trainer=trl-sft``, or a mapping of the fields of ``Stack``.
    """

    gpus: str | None = None
    model_config: str | None = None
    trace: bool = False
    stack: str | Mapping[str, object] | None = None
    flowchart: str | None = None
    isolated: bool = False
    """Read no settings file."""
    rules: tuple[str, ...] = ()
    """Folders of rules that run, instead of those that settings name."""
    offline: bool = True
    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    validate: bool = False
    """Also ask the installed axolotl and DeepSpeed."""
    data: str | None = None
    """A file of rows: what they say of the entry that names it."""
    fail_on: Level | None = None
    formats: tuple[str, ...] = ()
    images: str | None = None
    """Images of a row: ``2x1024x768``."""
    row_length: int | None = None
    """Tokens of a row for a second estimate."""
    details: bool = False
    """Also the time of a step and the basis of the estimate, as with JSON."""
    answers: bool = False
    """Also what a person asks of the run, with its options, whatever the format."""


WORDS = {
    "gpus": "--gpus",
    "model_config": "--model-config",
    "flowchart": "--flowchart",
    "images": "--images",
    "rules": "--rules",
    "select": "--select",
    "ignore": "--ignore",
    "trace": "--trace",
    "isolated": "--isolated",
}
"""What a later call must say again to mean the same run, with the option that says it."""


def given_words(options: RunOptions) -> tuple[str, ...]:
    """The words of a call that say where and with what the run will be."""
    words: list[str] = []
    for name, option in WORDS.items():
        value: object = getattr(options, name)
        if value is True:
            words.append(option)
        elif value:
            values = cast("tuple[str, ...]", value) if isinstance(value, tuple) else (str(value),)
            words += [word for one in values for word in (option, one)]
    stack = options.stack
    if stack:
        said = stack if isinstance(stack, str) else ",".join(f"{key}={value}" for key, value in stack.items())
        words += ["--stack", said]
    return (*words, *(() if options.offline else ("--online",)))
