"""``advisor launch``: checks the run that a command is about to start, and then becomes that command."""

import os
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.placement import cloud_of, config_of, hardware_of, session_of
from advisor.cli.question.own_files import is_alone, is_first
from advisor.cli.question.starting import rest_against, verdict_lines
from advisor.engine.blocking import NO_BLOCK
from advisor.engine.finding import Finding
from advisor.errors import InputError
from advisor.record import record, replace
from advisor.report.disagreement import asks_to_verify, disagreement
from advisor.report.terminal import colored, draws, width
from advisor.session import CheckedRun, RunOptions, check_config
from advisor.session.disk import shortage
from advisor.streams import aside, flush, hushed, tell

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""What a shell says of a command that is not there, or that it may not run."""
OWN = re.compile("ADVISOR_RULES|PATH|HOME|USERPROFILE|(XDG|LD|DYLD|GIT)_.*|PYTHON.*")
"""What decides which programs and rules this process runs: never taken from a script that is only read."""
ANYWAY = "to run anyway: `advisor launch --no-block -- ...`"


@record(eq=False)
class _Stopped:
    """A run that may not start, and why."""

    checked: CheckedRun
    against: tuple[Finding, ...]
    here: bool
    """Whether it would run with what is installed on this machine."""


def launch_command(tokens: Sequence[str], options: RunOptions, *, no_block: bool) -> int:
    """Checks, says on standard error what it found, asks where it may, and becomes the command; 1 if it is blocked."""
    stopped = _stopped(tokens, options, no_block=no_block)
    if stopped is not None and (code := _asked(stopped)):
        return code
    if stopped is not None and (again := _stopped(tokens, options, no_block=no_block)):
        _say_blocked(again)
        return 1
    if no_block:
        os.environ[NO_BLOCK] = "1"
    return become(tokens)


def _stopped(tokens: Sequence[str], options: RunOptions, *, no_block: bool) -> _Stopped | None:
    """Looks at the files as they are now; of a run that may start, says what there is to say."""
    first = is_first()
    stopped: _Stopped | None = None
    with _environment_kept(), hushed(by=not first), _trouble_in_a_line():
        command = read_command(tokens)
        found = _examined_run(command, replace(options, details=first), whole=first)
        if found is not None and not no_block and found.against:
            stopped = _Stopped(found, found.against, command.cloud is None)
        elif found is not None and first:
            explain(found)
            lacking = shortage(found.run) if command.cloud is None else None
            tell(f"warning: {lacking}") if lacking else None
    return stopped


def _asked(stopped: _Stopped) -> int:
    """0 if something was written, so that the run is to be looked at again; else the exit code, once all is said."""
    if not is_first():
        tell(f"blocked by {stopped.against[0].rule}: see rank 0's output")
        return 1
    from advisor.cli.question.asking import ask

    outcome = ask(stopped.checked, stopped.against, starts=is_alone(), here=stopped.here)
    match outcome:
        case "written" if is_alone():
            return 0
        case "written":
            tell("the other ranks have ended: start the command again")
        case "unasked":
            _say_blocked(stopped)
        case _:
            pass
    return 130 if outcome == "interrupted" else 1


def _say_blocked(stopped: _Stopped) -> None:
    """In five lines at most; ``advisor check`` has the whole report."""
    from advisor.cli.question.blocked import blocked_lines

    for line in blocked_lines(stopped.checked, stopped.against, ANYWAY, here=stopped.here):
        tell(line)


@contextmanager
def _environment_kept() -> Generator[None]:
    """What a script says of the environment counts in here alone."""
    mine = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(mine)


@contextmanager
def _trouble_in_a_line() -> Generator[None]:
    """What goes wrong in here is a line, and ends no launch."""
    try:
        yield
    except InputError as error:
        place = f"{error.file}:{error.line}: " if error.line else f"{error.file}: " if error.file else ""
        tell(f"not checked: {place}{error.message}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too, which a rule may raise
        tell(f"not checked: {type(error).__name__}: {error}")


def _examined_run(command: Command, options: RunOptions, *, whole: bool) -> CheckedRun | None:
    """The run that the command starts; ``whole`` with all that is said of it. None, with a line, if there is none."""
    os.environ.update({name: said for name, said in command.environment.items() if not OWN.fullmatch(name)})
    if command.scale.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = command.scale.devices
    if command.config is None:
        tell(f"not checked: {command.reason}")
        return None
    if os.path.exists(command.config) and not os.path.isfile(command.config):
        tell(f"not checked: {command.config} is no regular file, and what is read from it is gone for the command")
        return None
    if command.remark:
        tell(command.remark)
    cloud = cloud_of(command, options.gpus)
    session, config = session_of(command, options), config_of(command, cloud)
    hardware = hardware_of(command, config, session, cloud)
    if hardware is not None and hardware.assumed and cloud is None:
        tell(hardware.assumed)
    session = session if whole else session.verdict_alone
    return check_config(config, session, hardware=hardware, speed=False)


def explain(found: CheckedRun) -> None:
    """The verdict of a run that starts, with errors and warnings in a line each."""
    from advisor.report import render_check

    shown = rest_against(found)
    if shown.findings:
        text = render_check([shown], "concise", color=colored(sys.stderr), width=width(), unicode=draws(sys.stderr))
        aside(text, color=True)
    for line in verdict_lines(found, with_options=True):
        tell(line)
    if asks_to_verify(found.report):
        tell(disagreement(found.run.config.file))


def become(tokens: Sequence[str]) -> int:
    """Replaces this process, so that signals and the exit code are the command's."""
    flush()
    try:
        os.execvp(tokens[0], list(tokens))
    except FileNotFoundError:
        tell(f"{tokens[0]}: command not found")
        return NOT_FOUND
    except OSError as error:
        tell(f"{tokens[0]}: {error.strerror}")
        return NOT_RUNNABLE
