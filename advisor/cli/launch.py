"""``advisor launch``: checks the run that a command is about to start, and then becomes that command."""

import os
import sys
from collections.abc import Sequence

import click

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.placement import cloud_of, config_of, hardware_of, session_of, tell
from advisor.engine.blocking import NO_BLOCK, in_one_line
from advisor.engine.finding import Finding, Report
from advisor.errors import InputError
from advisor.record import replace
from advisor.report.terminal import colored, draws, width
from advisor.session import RunOptions, examine
from advisor.session.disk import shortage

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""What a shell says of a command that is not there, or that it may not run."""
RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")


def launch_command(tokens: Sequence[str], options: RunOptions, *, no_block: bool) -> int:
    """Checks, says on standard error what it found, and becomes the command; 1 if it is blocked."""
    mine = dict(os.environ)
    goes_on = nothing_against(tokens, options, no_block=no_block)
    os.environ.clear()
    os.environ.update(mine | ({NO_BLOCK: "1"} if no_block else {}))
    return become(tokens) if goes_on else 1


def nothing_against(tokens: Sequence[str], options: RunOptions, *, no_block: bool) -> bool:
    """Whether nothing speaks against the launch. What goes wrong in here is one line, and never blocks."""
    try:
        command = read_command(tokens)
        os.environ.update(command.environment)
        if command.scale.devices:
            os.environ["CUDA_VISIBLE_DEVICES"] = command.scale.devices
        return checked(command, options, no_block=no_block)
    except InputError as error:
        place = f"{error.file}:{error.line}: " if error.line else f"{error.file}: " if error.file else ""
        said = f"{place}{error.message}"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    tell(f"not checked: {said}")
    return True


def checked(command: Command, options: RunOptions, *, no_block: bool) -> bool:
    """Checks the run that the command names, and says what speaks against it."""
    if command.config is None:
        tell(f"not checked: {command.reason}")
        return True
    if os.path.exists(command.config) and not os.path.isfile(command.config):
        tell(f"not checked: {command.config} is no regular file, and what is read from it is gone for the command")
        return True
    if command.remark:
        tell(command.remark)
    cloud = cloud_of(command, options.gpus)
    session, config = session_of(command, replace(options, details=True)), config_of(command, cloud)
    hardware = hardware_of(command, config, session, cloud)
    if hardware is not None and hardware.assumed and cloud is None:
        tell(hardware.assumed)
    found = examine(config, session, hardware=hardware, speed=False)
    against = () if no_block else found.against
    if not any(os.environ.get(name, "0") != "0" for name in RANKS):
        explain(found.report, against)
        if cloud is None and (lacking := shortage(found.run)):
            tell(f"warning: {lacking}")
    elif against:
        tell(f"blocked by {against[0].rule}: see rank 0's output")
    return not against


def explain(report: Report, against: Sequence[Finding]) -> None:
    """Everything where the launch is blocked; else the verdict, with errors and warnings in a line each."""
    from advisor.report import render_check

    shown = report if against else report.without_notes()
    if shown.findings:
        form, color = "full" if against else "concise", colored(sys.stderr)
        text = render_check([shown], form, color=color, width=width(), unicode=draws(sys.stderr))
        click.echo(text, err=True, color=True)
    if against:
        rules = ", ".join(dict.fromkeys(finding.rule for finding in against))
        tell(f"blocked by {rules}")
        comment = f"# advisor: file-ignore[{rules}] reason"
        tell(f"to run anyway: `advisor launch --no-block -- ...`, or `{comment}` at the top of {report.file}")
    else:
        tell(f"{in_one_line(report)}; launching")


def become(tokens: Sequence[str]) -> int:
    """Replaces this process, so that signals and the exit code are the command's."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(tokens[0], list(tokens))
    except FileNotFoundError:
        tell(f"{tokens[0]}: command not found")
        return NOT_FOUND
    except OSError as error:
        tell(f"{tokens[0]}: {error.strerror}")
        return NOT_RUNNABLE
