"""A call: its options with the settings folded in, and the runs that it is about."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from advisor.cli import colored
from advisor.documents import Document
from advisor.errors import InputError
from advisor.gather import from_stdin, gathered
from advisor.judge import Options
from advisor.loading import STAGES, built_in_rules, organisation_rules
from advisor.project import Context, Opened, open_run
from advisor.rule import Level, Rule
from advisor.settings import Settings, load_settings
from advisor.stack import Stack, read_stack


@dataclass(frozen=True, eq=False, repr=False)
class Asked:
    """One call of ``check``, settings folded in."""

    context: Context
    options: Options
    fail_on: Level
    per_file_ignores: dict[str, tuple[str, ...]]
    formats: tuple[str, ...]


def settings_for(paths: Sequence[str], given: dict[str, Any]) -> Settings:
    """The settings nearest to the first path."""
    first = paths[0] if paths[0] != "-" else "."
    folder = first if os.path.isdir(first) else os.path.dirname(first) or "."  # noqa: PTH112, PTH120
    return load_settings(folder, isolated=given["isolated"])


def asked_of(given: dict[str, Any], settings: Settings) -> Asked:
    """The call, with the settings for what it leaves open."""
    fail_on = given.get("fail_on") or settings.fail_on
    extra = organisation_rules(settings.rules)
    options = Options(
        flowchart=given["flowchart"] or settings.flowchart,
        select=names(given.get("select", ()), settings.select, extra),
        ignore=names((*given.get("ignore", ()), *settings.ignore), (), extra),
        extra_rules=extra,
    )
    formats = tuple(given.get("formats") or ()) or ((settings.output_format,) if settings.output_format else ("full",))
    return Asked(context_of(given, settings), options, fail_on, dict(settings.per_file_ignores), formats)


def names(given: Sequence[str], otherwise: Sequence[str], extra: Mapping[str, Rule]) -> tuple[str, ...]:
    """Rule ids, checked against the rules there are."""
    wanted = tuple(part.strip() for name in (given or otherwise) for part in name.split(",") if part.strip())
    if wanted:
        known = {rule for stage in STAGES for rule in built_in_rules(stage)} | {*extra, "unused-ignore"}
        for name in wanted:
            if name not in known:
                raise InputError(f"unknown rule `{name}`", remedy=near(name, known))
    return wanted


def near(name: str, known: Collection[str]) -> str:
    """What may have been meant."""
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean `{close[0]}`?" if close else "`advisor rule` lists them"


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
    )


def stack_of(text: str | None, settings: Settings) -> Stack:
    """``torch=2.9.0,trainer=trl-sft`` over the settings' stack over the default."""
    if text == "installed":
        from advisor.installed import installed_stack

        return installed_stack()
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    words = {"true": True, "false": False}
    said: dict[str, object] = {
        key.strip().replace("-", "_"): words.get(value.strip().lower(), value.strip()) for key, _, value in pairs
    }
    return read_stack({**settings.stack, **said})


def opened_runs(paths: Sequence[str], asked: Asked) -> tuple[list[InputError], list[Opened]]:
    """The runs of all paths, and what could not be read; the errors are told at once."""
    errors: list[InputError] = []
    opened: list[Opened] = []
    for found in documents_of(paths):
        try:
            if isinstance(found, InputError):
                raise found
            opened.append(open_run(found, asked.context))
        except InputError as error:
            errors.append(error)
    from advisor.report import render_error

    for error in errors:
        click.echo(render_error(error, color=colored(sys.stderr)), err=True)
    if not errors and not opened:
        click.echo("nothing to check: an axolotl config is a YAML with a `base_model`", err=True)
    return errors, opened


def documents_of(paths: Sequence[str]) -> list[Document | InputError]:
    """Documents in order; ``-`` is standard input."""
    if "-" in paths:
        return [from_stdin(sys.stdin.buffer.read())]
    return list(gathered(paths))


def options_for(opened: Opened, asked: Asked, *, safe_only: bool = False) -> Options:
    """The options of one file, with the settings' ignores for it."""
    from fnmatch import fnmatch

    file = opened.run.config.file
    more = [rule for pattern, rules in asked.per_file_ignores.items() if fnmatch(file, pattern) for rule in rules]
    return replace(asked.options, ignore=(*asked.options.ignore, *more), safe_only=safe_only)
