"""``axolotl advise``: what ``advisor check`` says of the run that ``axolotl train`` would start with the same words."""

from collections.abc import Sequence

from advisor.cli.launch import scaled_by
from advisor.cli.launchers import read_command
from advisor.cli.output import exit_code, say
from advisor.documents import read
from advisor.documents.discovery import is_config
from advisor.errors import InputError
from advisor.run.overrides import overridden
from advisor.session import RunOptions, examine, session_for
from advisor.session.launched import launched_on


def advise_command(tokens: Sequence[str], options: RunOptions) -> int:
    """0 clean, 1 findings, 2 could not run."""
    command = read_command(("axolotl", "train", *tokens))
    if command.config is None:
        raise InputError(command.reason, remedy="write `axolotl advise config.yml [--key value]`")
    session = session_for([command.config], options, here=True)
    config = overridden(read(command.config), command.overrides)
    if not is_config(config):
        raise InputError("is not an axolotl config: it has no `base_model`", config.file, remedy="name an axolotl YAML")
    hardware = launched_on(config, session, scaled_by(command))
    report = examine(config, session, hardware=hardware).report
    say([report], session)
    return exit_code([report], [], session)
