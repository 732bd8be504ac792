"""``advisor launch``: checks the run that a command is about to start, and then becomes that command."""

import os
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.placement import cloud_of, config_of, hardware_of, session_of
from advisor.engine.blocking import NO_BLOCK, in_one_line
from advisor.engine.finding import Finding, Report
from advisor.errors import InputError
from advisor.record import replace
from advisor.report.terminal import colored, draws, width
from advisor.session import CheckedRun, RunOptions, check_config
from advisor.session.disk import shortage
from advisor.streams import aside, flush, hushed, tell

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""What a shell says of a command that is not there, or that it may not run."""
OWN = re.compile("ADVISOR_RULES|PATH|HOME|USERPROFILE|(XDG|LD|DYLD|GIT)_.*|PYTHON.*")
"""What decides which programs and rules this process runs: never taken from a script that is only read."""
RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")


def launch_command(tokens: Sequence[str], options: RunOptions, *, no_block: bool) -> int:
    """Checks, says on standard error what it found, and becomes the command; 1 if it is blocked."""
    mine, first = dict(os.environ), is_first()
    against: tuple[Finding, ...] = ()
    with hushed(by=not first), _trouble_in_a_line():
        command = read_command(tokens)
        found = _examined_run(command, replace(options, details=first), whole=first)
        if found is not None:
            against = () if no_block else found.against
        if found is not None and first:
            explain(found.report, against)
            lacking = shortage(found.run) if command.cloud is None else None
            tell(f"warning: {lacking}") if lacking else None
    if against and not first:
        tell(f"blocked by {against[0].rule}: see rank 0's output")
    os.environ.clear()
    os.environ.update(mine | ({NO_BLOCK: "1"} if no_block else {}))
    return 1 if against else become(tokens)


def is_first() -> bool:
    """Whether this is the rank that speaks."""
    return not any(os.environ.get(name, "0") != "0" for name in RANKS)


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
    return check_config(config, session if whole else session.verdict_alone, hardware=hardware, speed=False)


def explain(report: Report, against: Sequence[Finding]) -> None:
    """Everything where the launch is blocked; else the verdict, with errors and warnings in a line each."""
    from advisor.report import render_check

    shown = report if against else report.without_notes()
    if shown.findings:
        form, color = "full" if against else "concise", colored(sys.stderr)
        text = render_check([shown], form, color=color, width=width(), unicode=draws(sys.stderr))
        aside(text, color=True)
    if against:
        rules = ", ".join(dict.fromkeys(finding.rule for finding in against))
        tell(f"blocked by {rules}")
        comment = f"# advisor: file-ignore[{rules}] reason"
        tell(f"to run anyway: `advisor launch --no-block -- ...`, or `{comment}` at the top of {report.file}")
    else:
        tell(f"{in_one_line(report)}; launching")


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
