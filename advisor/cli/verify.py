"""``advisor verify``: a few real steps of a run, next to its estimate. 0 as foreseen, 1 not, 2 could not run."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import yaml

from advisor.cli.crash_log import Death, read_death
from advisor.cli.verifying.comparison import compared
from advisor.cli.verifying.keeping import block_lines, kept_lines
from advisor.cli.verifying.outcome import out_of_memory
from advisor.cli.verifying.planning import Trial, VerifyOptions, planned, request_of
from advisor.cli.verifying.request import PLUGIN, Request, changed, write_request
from advisor.cli.verifying.screen import Screen
from advisor.cli.verifying.seen import Seen, seen_in
from advisor.cli.verifying.training import TerminatedError, ended_by_signals, last_error, log_of, trained
from advisor.errors import InputError
from advisor.progress import shown
from advisor.report.terminal import own_style
from advisor.session import RunOptions
from advisor.speed import StepTime
from advisor.streams import aside

TERMINATED = 143
PREFIX = "advisor-verify-"


def verify_command(path: str, tokens: Sequence[str], options: RunOptions, asked: VerifyOptions) -> int:
    """0 as foreseen, within the range; 1 not, or out of memory; 2 could not run."""
    trial = planned(path, tokens, options, asked)
    try:
        with ended_by_signals(), TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
            return _tried(trial, request_of(trial, os.path.realpath(folder), asked), verbose=asked.verbose)
    except TerminatedError:
        aside("terminated")
        return TERMINATED


def _tried(trial: Trial, request: Request, *, verbose: bool) -> int:
    """Trains, and says what was seen."""
    write_request(request)
    words = _words_of(trial, request)
    with shown():
        code = trained(words, request.folder, {"CUDA_VISIBLE_DEVICES": ""} if request.cpu else {})
    seen, log = seen_in(request.folder), log_of(request.folder)
    if verbose:
        aside(log)
    if seen is not None and seen.ended:
        return _said(trial, request, seen)
    if code and (death := _death_in(log)):
        for line in out_of_memory(trial, death, seen):
            aside(line)
        return 1
    raise _failure(trial, seen, log, code)


def _words_of(trial: Trial, request: Request) -> tuple[str, ...]:
    """The command with a config of its own, which lies in the folder of the request."""
    values: Any = changed(trial.config.values_mapping, request)
    copy = Path(request.folder) / "config.yaml"
    copy.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), encoding="utf-8")
    named = trial.command.config or ""
    instead = {named: str(copy), f"--config={named}": f"--config={copy}"}
    words = tuple(instead.get(word, word) for word in trial.tokens)
    if words == trial.tokens and PLUGIN not in (trial.config.get("plugins") or ()):
        raise InputError(
            "the command names this config in a script, which stays as it is",
            trial.config.file,
            remedy=f"give the command that stands there, or write `plugins: [{PLUGIN}]` into the config",
        )
    return words


def _said(trial: Trial, request: Request, seen: Seen) -> int:
    """The table, the record and the block."""
    style = own_style()
    result = compared(trial.estimate, seen, cpu=request.cpu)
    found = trial.found.report.time
    time = found if isinstance(found, StepTime) and not request.cpu else None
    blocks: tuple[Iterator[str], ...] = (
        Screen(result, style).lines(trial.found.report, request, time, trial.estimate),
        kept_lines(trial, seen, request, style),
        block_lines(trial, seen, request, style),
    )
    click.echo("\n\n".join("\n".join(block) for block in blocks), color=True)
    return 0 if result.as_foreseen else 1


def _death_in(log: str) -> Death | None:
    """How memory ran out, if it did."""
    with suppress(InputError):
        return read_death(log)
    return None


def _foreseen(trial: Trial) -> list[str]:
    """What ``advisor check`` says of it."""
    stops = [each for each in trial.found.report.findings if each.level == "error"]
    rules = dict.fromkeys(each.rule for each in stops)
    return [f"`advisor check {trial.config.file}` says that it stops: {', '.join(rules)}"] if rules else []


def _failure(trial: Trial, seen: Seen | None, log: str, code: int) -> InputError:
    """Why there are no figures, in a line."""
    file = trial.config.file
    if code:
        where = f" in {seen.during}" if seen is not None else ""
        remedy = "; ".join([*_foreseen(trial), "`-v` shows its log"])
        return InputError(f"the training failed{where}: {last_error(log)}", file, remedy=remedy)
    message = "the training ended, and the plugin saw nothing of it"
    return InputError(message, file, remedy="install axolotl-advisor next to axolotl, in the same environment")
