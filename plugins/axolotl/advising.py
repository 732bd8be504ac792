"""``axolotl advise``: what ``advisor check`` says of the run that ``axolotl train`` would start with the same words."""

import sys
from collections.abc import Sequence

import click

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.placement import cloud_of, config_of, hardware_of, session_of
from advisor.cli.options import CheckOptions
from advisor.cli.output import exit_code, say
from advisor.cli.question.blocked import given_again
from advisor.documents.discovery import is_config, no_config
from advisor.errors import InputError
from advisor.record import replace
from advisor.report.terminal import width
from advisor.report.to_write import to_write_lines
from advisor.session import CheckedRun, Session, check_config
from advisor.streams import is_terminal, tell, unheard


def advise_command(tokens: Sequence[str], options: CheckOptions) -> int:
    """0 clean, 1 findings, 2 could not run, 130 interrupted. On a terminal it offers to write what makes it fit."""
    options.validate_pairs()
    command = read_command(("axolotl", "train", *tokens))
    if command.config is None:
        raise InputError(command.reason, remedy="write `axolotl advise config.yml [--key value]`")
    found, session = _checked(command, options)
    with unheard():
        say([found.report], session, detail=options.detail)
        _say_how_to_write(found, session)
    if found.against and is_terminal(sys.stdout):
        from advisor.cli.question.asking import ask

        outcome = ask(found, found.against, starts=False, here=command.cloud is None)
        if outcome == "interrupted":
            return 130
        if outcome == "written":
            from .messages import verdict

            found, session = _checked(command, options)
            for line in verdict(found).splitlines():
                tell(line)
    return exit_code([found.report], [], session)


def _say_how_to_write(found: CheckedRun, session: Session) -> None:
    """The whole command, for this one has no ``--fix``; keys of the command line are in no file that it would patch."""
    config, answer = found.run.config, found.report.answer
    if answer is None or session.formats != ("full",) or config.given or config.is_new:
        return
    if lines := list(to_write_lines(answer, width())):
        click.echo("\n".join(("", *lines)))


def _checked(command: Command, options: CheckOptions) -> tuple[CheckedRun, Session]:
    """The run as its files are now."""
    cloud = cloud_of(command, options.gpus)
    session, config = session_of(command, options), config_of(command, cloud)
    if not is_config(config):
        raise no_config(config.file)
    hardware = hardware_of(command, config, session, cloud)
    given = given_again(session.options, hardware, here=command.cloud is None)
    session = replace(session, options=replace(session.options, given=given))
    return check_config(config, session.answering, hardware=hardware), session
