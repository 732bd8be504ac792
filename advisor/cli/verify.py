"""``advisor verify``: a few real steps of a run, next to its estimate. 0 as foreseen, 1 not, 2 could not run."""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.placement import config_of, hardware_of, session_of
from advisor.cli.verifying.request import PLUGIN, Request, changed, write_request
from advisor.documents import Document
from advisor.documents.discovery import is_config, no_config
from advisor.errors import InputError
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.progress import shown
from advisor.record import record, replace
from advisor.run import Run
from advisor.session import CheckedRun, RunOptions, Session, check_config
from advisor.streams import aside

if TYPE_CHECKING:
    from advisor.cli.verifying.seen import Seen

TRAIN = ("axolotl", "train")
TERMINATED = 143
ON_A_CPU = "1x rtx-4090"
"""The card that is foreseen for where a run is tried on a CPU and nobody says another one."""
OWN_ROWS = ("processor_type", "streaming", "pretraining_dataset", "reward_model", "process_reward_model")
"""Keys of runs whose rows are more than tokens and answers."""
PACKED = 4
"""Rows in a bin."""
ANSWERS = frozenset(["grpo", "gdpo", "ebft"])
INSTALL = "install axolotl where you train, and this package next to it: `pip install axolotl`"


@record
class VerifyOptions:
    """What ``advisor verify`` alone was asked."""

    steps: int = 3
    cpu: bool = False
    verbose: bool = False


@record(eq=False)
class _Plan:
    """What is about to be tried."""

    tokens: tuple[str, ...]
    command: Command
    config: Document
    found: CheckedRun


def verify_command(path: str, tokens: Sequence[str], options: RunOptions, asked: VerifyOptions) -> int:
    """0 as foreseen, within the range; 1 not, or out of memory; 2 could not run."""
    from advisor.cli.verifying.training import TerminatedError, ended_by_signals

    plan = _planned(path, tokens, options, asked)
    try:
        with ended_by_signals(), tempfile.TemporaryDirectory(prefix="advisor-verify-", ignore_cleanup_errors=True) as folder:
            return _tried(plan, _request_of(plan.found.run, plan.config, os.path.realpath(folder), asked), asked)
    except TerminatedError:
        aside("terminated")
        return TERMINATED


def _planned(path: str, tokens: Sequence[str], options: RunOptions, asked: VerifyOptions) -> _Plan:
    """The command and the estimate of its run. ``InputError`` for what cannot be tried here."""
    words = _with_config(tuple(tokens) or TRAIN, path)
    command = read_command(words)
    _check_command(command, path)
    if shutil.which(words[0]) is None:
        said = "axolotl is not installed" if words[0] == "axolotl" else "it cannot be started"
        raise InputError(f"{said}: there is no `{words[0]}` on the PATH", remedy=INSTALL)
    session, config = session_of(command, replace(options, details=True)), config_of(command, None)
    if not is_config(config):
        raise no_config(config.file)
    found = check_config(config, session, hardware=_hardware_of(command, config, session, asked), speed=False)
    if found.report.estimate is None:
        reason = found.run.model_reason or ": its model or a value is unknown"
        raise InputError(f"nothing is foreseen of this run{reason}", path, remedy=f"`advisor check {path}` says more")
    return _Plan(words, command, config, found)


def _with_config(words: tuple[str, ...], path: str) -> tuple[str, ...]:
    """The command with the config, where it names none."""
    if read_command(words).config is not None:
        return words
    named = words.index("--") if "--" in words else len(words)
    return (*words[:named], path, *words[named:])


def _check_command(command: Command, path: str) -> None:
    """Refuses what trains something else, or elsewhere."""
    if command.config is None:
        raise InputError(f"nothing to verify: {command.reason}", remedy="write `advisor verify run.yaml`")
    if not os.path.exists(path) or not os.path.isfile(path):
        raise InputError("is no file" if os.path.exists(path) else "there is no such file", path)
    if os.path.realpath(command.config) != os.path.realpath(path):
        raise InputError(f"the command trains {command.config}", path, remedy="name the same config twice, or once")
    if command.cloud is not None:
        raise InputError("a cloud trains this, and nothing can be seen here", command.cloud, remedy="leave --cloud out")


def _hardware_of(command: Command, config: Document, session: Session, asked: VerifyOptions) -> Hardware | None:
    """What the run is foreseen for: the GPUs that are here, or that are stated."""
    if not asked.cpu and detect() is None:
        raise InputError("no GPU was found here", remedy="run it where you train; `--cpu` tries a tiny model without one")
    found = hardware_of(command, config, session, None)
    if not asked.cpu:
        return found
    return replace(found or parse_hardware(ON_A_CPU), gpus_per_node=1, nodes=1)


def _request_of(run: Run, config: Document, folder: str, asked: VerifyOptions) -> Request:
    """What is asked of the training."""
    own = run.rl in ANSWERS or any(config.get(key) for key in OWN_ROWS)
    length, each = _row_of(run, run.sequence_len, packs=run.sample_packing)
    eval_length, eval_each = _row_of(run, run.eval_sequence_len, packs=run.packs_evaluation)
    return Request(
        folder=folder,
        steps=asked.steps,
        evaluates=run.evaluates,
        cpu=asked.cpu,
        rows="own" if own else "packed" if run.sample_packing else "synthetic",
        length=length,
        each=each,
        eval_length=eval_length,
        eval_each=eval_each,
    )


def _row_of(run: Run, longest: int, *, packs: bool) -> tuple[int, int]:
    """The tokens of a row, and how many go into a row of a batch.

    One token is missing to the longest, so that it is padded, and has a mask; bins hold several rows, as they do.
    """
    if run.rl is not None:
        return longest, 1
    return (max(1, longest // PACKED), PACKED) if packs else (max(1, longest - 1), 1)


def _tried(plan: _Plan, request: Request, asked: VerifyOptions) -> int:
    """Trains, and says what was seen."""
    from advisor.cli.verifying.seen import seen_in
    from advisor.cli.verifying.training import log_of, trained

    write_request(request)
    environment = {"CUDA_VISIBLE_DEVICES": ""} if request.cpu else {}
    with shown():
        code = trained(_words_of(plan, request), request.folder, environment)
    seen, log = seen_in(request.folder), log_of(request.folder)
    if asked.verbose:
        aside(log)
    if seen is not None and seen.ended:
        return _said(plan, request, seen)
    return _failed(plan, request, seen, log, code)


def _words_of(plan: _Plan, request: Request) -> tuple[str, ...]:
    """The command with a config of its own, which lies in the folder of the request."""
    values: Any = changed(plan.config.values_mapping, request)
    copy = Path(request.folder) / "config.yaml"
    copy.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), encoding="utf-8")
    named = plan.command.config or ""
    words = tuple(
        str(copy) if word == named else f"--config={copy}" if word == f"--config={named}" else word for word in plan.tokens
    )
    if words == plan.tokens and PLUGIN not in (plan.config.get("plugins") or ()):
        remedy = f"give the command that stands in the script, or write `plugins: [{PLUGIN}]` into the config"
        raise InputError("the command names this config in a script, which is not changed", plan.config.file, remedy=remedy)
    return words


def _said(plan: _Plan, request: Request, seen: "Seen") -> int:
    """The table, the record and the block."""
    from advisor.cli.verifying.comparison import compared
    from advisor.cli.verifying.keeping import block_lines, kept_lines
    from advisor.cli.verifying.screen import Screen
    from advisor.report.terminal import own_style
    from advisor.speed import StepTime

    report, style = plan.found.report, own_style()
    assert report.estimate is not None, "what has no estimate is refused"
    result = compared(report.estimate, seen, cpu=request.cpu)
    time = report.time if isinstance(report.time, StepTime) and not request.cpu else None
    lines = [
        *Screen(result, style).lines(report, request, time, report.estimate),
        "",
        *kept_lines(plan.found.run, report.estimate, seen, request, style),
        "",
        *block_lines(plan.found, seen, request, style),
    ]
    click.echo("\n".join(lines), color=True)
    return 0 if result.as_foreseen else 1


def _failed(plan: _Plan, request: Request, seen: "Seen | None", log: str, code: int) -> int:
    """Out of memory is an answer; all else is an ``InputError`` with the last error of the training."""
    from advisor.cli.crash_log import read_death
    from advisor.cli.verifying.outcome import out_of_memory
    from advisor.cli.verifying.training import last_error

    death = None
    with suppress(InputError):
        death = read_death(log)
    if death is not None and code:
        for line in out_of_memory(plan.found, death, seen):
            aside(line)
        return 1
    if code:
        where = f" in {seen.during}" if seen is not None else ""
        raise InputError(f"the training failed{where}: {last_error(log)}", plan.config.file, remedy="`-v` shows its log")
    message = "the training ended without a word from the plugin"
    raise InputError(message, plan.config.file, remedy="install axolotl-advisor next to axolotl, in the same environment")
