"""A call: its options with the settings folded in, and the runs that it is about."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.cli.rule_selection import ignores_by_file, names, names_in, rules_of_settings, validating
from advisor.documents import Document
from advisor.documents.discovery import from_stdin, gathered
from advisor.engine.check import Options
from advisor.engine.rule import Level
from advisor.errors import InputError
from advisor.opening import Context, Opened
from advisor.record import record
from advisor.run.history import measured_here
from advisor.run.stack import Stack, read_stack
from advisor.settings import Settings, load_settings


@record(eq=False)
class Asked:
    """One call of ``check``, settings folded in."""

    context: Context
    options: Options
    fail_on: Level
    per_file_ignores: Mapping[str, tuple[str, ...]]
    formats: tuple[str, ...]


def settings_for(paths: Sequence[str], given: dict[str, Any]) -> Settings:
    """The settings nearest to the first path."""
    first = paths[0] if paths[0] != "-" else "."
    folder = first if os.path.isdir(first) else os.path.dirname(first) or "."  # noqa: PTH112, PTH120
    return load_settings(folder, isolated=given["isolated"])


def asked_of(given: dict[str, Any], settings: Settings) -> Asked:
    """The call, with the settings for what it leaves open."""
    fail_on = given.get("fail_on") or settings.fail_on
    extra = {**rules_of_settings(settings), **validating(given)}
    options = Options(
        flowchart=given["flowchart"] or settings.flowchart,
        select=names(given.get("select", ()), extra) or names_in(settings, "select", settings.select, extra),
        ignore=(*names(given.get("ignore", ()), extra), *names_in(settings, "ignore", settings.ignore, extra)),
        extra_rules=extra,
    )
    formats = tuple(given.get("formats") or ()) or ((settings.output_format,) if settings.output_format else ("full",))
    return Asked(context_of(given, settings), options, fail_on, ignores_by_file(settings, extra), formats)


def context_of(given: dict[str, Any], settings: Settings) -> Context:
    """Where and with what the runs will be."""
    terminal = sys.stdout.isatty() and not os.environ.get("CI") and not os.environ.get("PRE_COMMIT")
    return Context(
        gpus=given["gpus"],
        default_gpus=settings.gpus,
        detects=bool(given.get("detects", terminal)),
        stack=stack_of(given["stack"], settings),
        model_config=given["model_config"],
        offline=given["offline"],
        trace=given.get("trace", False),
        measured=measured_here(),
    )


def stack_of(text: str | None, settings: Settings) -> Stack:
    """``torch=2.9.0,trainer=trl-sft`` over the settings' stack over the default."""
    if text == "installed":
        from advisor.run.installed import installed_stack

        return installed_stack()
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    words = {"true": True, "false": False}
    said: dict[str, object] = {
        key.strip().replace("-", "_"): words.get(value.strip().lower(), value.strip()) for key, _, value in pairs
    }
    return read_stack({**settings.stack, **said})


def documents_of(paths: Sequence[str]) -> list[Document | InputError]:
    """The axolotl configs in order; ``-`` is standard input."""
    if "-" in paths:
        return [from_stdin(sys.stdin.buffer.read())]
    return [found for found in gathered(paths) if isinstance(found, InputError) or found.syntax == "yaml"]


def options_for(opened: Opened, asked: Asked, *, safe_only: bool = False) -> Options:
    """The options of one run, with the settings' ignores for its YAML and its DeepSpeed JSON."""
    from fnmatch import fnmatch

    section = opened.run.deepspeed
    named = (opened.run.config.file, *((section.file,) if section else ()))
    files = [os.path.realpath(file) for file in named]
    ignores = asked.per_file_ignores.items()
    more = [rule for pattern, rules in ignores if any(fnmatch(file, pattern) for file in files) for rule in rules]
    return replace(asked.options, ignore=(*asked.options.ignore, *more), safe_only=safe_only)
