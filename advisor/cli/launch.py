"""``advisor launch``: checks the run that a command is about to start, and then becomes that command."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from advisor.cli.launchers import Command, read_command
from advisor.cli.main import colored
from advisor.cli.options import asked_of, options_for, settings_for
from advisor.cli.output import draws, width
from advisor.documents import Document, read
from advisor.engine.blocking import NO_BLOCK, blockers, in_one_line
from advisor.engine.check import check_run
from advisor.engine.finding import Finding, Report
from advisor.errors import InputError
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.opening import Context, hardware_for, open_run
from advisor.run.overrides import overridden

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""What a shell says of a command that is not there, or that it may not run."""
RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")


def launch_command(tokens: Sequence[str], **given: Any) -> int:
    """Checks, says on standard error what it found, and becomes the command; 1 if it is blocked."""
    mine = dict(os.environ)
    goes_on = nothing_against(tokens, given)
    os.environ.clear()
    os.environ.update(mine | ({NO_BLOCK: "1"} if given["no_block"] else {}))
    return become(tokens) if goes_on else 1


def nothing_against(tokens: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Whether nothing speaks against the launch. What goes wrong in here is one line, and never blocks."""
    try:
        command = read_command(tokens)
        os.environ.update(command.environment)
        if command.scale.devices:
            os.environ["CUDA_VISIBLE_DEVICES"] = command.scale.devices
        return checked(command, given)
    except InputError as error:
        place = f"{error.file}:{error.line}: " if error.line else f"{error.file}: " if error.file else ""
        said = f"{place}{error.message}"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    tell(f"not checked: {said}")
    return True


def checked(command: Command, given: Mapping[str, Any]) -> bool:
    """Checks the run that the command names, and says what speaks against it."""
    if command.config is None:
        tell(f"not checked: {command.reason}")
        return True
    settings = settings_for([command.config], dict(given))
    asked = asked_of({**given, "formats": ()}, settings)
    config = overridden(read(command.config), command.overrides)
    found = hardware(command, config, given["gpus"], asked.context)
    opened = open_run(config, replace(asked.context, hardware=found))
    options = replace(options_for(opened, asked), speed=False)
    report = check_run(opened, options)
    against = () if given["no_block"] else blockers(report, options)
    if not any(os.environ.get(name, "0") != "0" for name in RANKS):
        explain(report, against)
    elif against:
        tell(f"blocked by {against[0].rule}: rank 0 says why")
    return not against


def hardware(command: Command, config: Document, gpus: str | None, context: Context) -> Hardware | None:
    """The GPUs of the launch: as its own option says, else those of this machine, else of the config or the settings.

    One GPU a process of the command, but where the option says how many.
    """
    if gpus:
        return parse_hardware(gpus)
    found = detect() or hardware_for(config, context)
    if found is None:
        return None
    per_node, nodes = command.scale.counts(found.gpus_per_node, found.nodes)
    return replace(found, gpus_per_node=per_node, nodes=nodes)


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


def tell(line: str) -> None:
    """One line on standard error."""
    click.echo(f"advisor: {line}", err=True)


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
