"""The advisor from Python: the same answers as the command line's."""

import json
import os
from collections.abc import Mapping
from typing import Any

from advisor.documents import Document, new_document, parse, read
from advisor.engine.check import Options, check_run
from advisor.engine.finding import Report
from advisor.errors import InputError
from advisor.memory import Estimate
from advisor.memory import estimate as estimate_run
from advisor.opening import Context, Opened, open_run
from advisor.run.stack import read_stack

Config = Mapping[str, Any] | str | os.PathLike[str]


def estimate(
    axolotl: Config, deepspeed: Config | None = None, *, gpus: str, stack: Mapping[str, object] | None = None
) -> Estimate:
    """The memory of a run on ``gpus`` (``"8x a100-80gb"``).

    ``axolotl`` and ``deepspeed`` are mappings or paths. ``InputError`` if they cannot be read or the model is unknown.
    """
    opened = opened_run(axolotl, deepspeed, gpus, stack)
    found = estimate_run(opened.run)
    if found is None:
        reason = opened.unknown_model.reason if opened.unknown_model else "no hardware"
        raise InputError(f"no estimate: {reason}", opened.run.config.file, remedy="give the model's config.json")
    return found


def check(
    axolotl: Config,
    deepspeed: Config | None = None,
    *,
    gpus: str | None = None,
    stack: Mapping[str, object] | None = None,
) -> Report:
    """Findings, verdict and plan of a run, as ``advisor check`` reports them."""
    return check_run(opened_run(axolotl, deepspeed, gpus, stack), Options())


def opened_run(
    axolotl: Config, deepspeed: Config | None, gpus: str | None, stack: Mapping[str, object] | None
) -> Opened:
    """The run of these configs."""
    config = document_of(axolotl, "config.yaml")
    if deepspeed is not None:
        value = dict(deepspeed) if isinstance(deepspeed, Mapping) else os.fspath(deepspeed)
        config = with_deepspeed(config, value)
    return open_run(config, Context(gpus=gpus, stack=read_stack(stack)))


def document_of(config: Config, name: str) -> Document:
    """A document from a path, or from a mapping of plain values."""
    if not isinstance(config, Mapping):
        return read(config)
    return parse(json.dumps(config).encode(), name, "yaml")


def with_deepspeed(config: Document, value: object) -> Document:
    """The config with another DeepSpeed file, or an inline one."""
    from advisor.documents import Set

    changed = config.changed(Set("deepspeed", value))
    return new_document(config.file, "yaml", changed.values_mapping) if isinstance(value, dict) else changed
