"""``axolotl advise``: what ``advisor check`` says of the run that ``axolotl train`` would start with the same words."""

from collections.abc import Sequence

from advisor.cli.launchers import read_command
from advisor.cli.launchers.placement import cloud_of, config_of, hardware_of, session_of
from advisor.cli.output import exit_code, say
from advisor.documents.discovery import is_config, no_config
from advisor.errors import InputError
from advisor.session import RunOptions, check_config
from advisor.streams import unheard


def advise_command(tokens: Sequence[str], options: RunOptions) -> int:
    """0 clean, 1 findings, 2 could not run."""
    command = read_command(("axolotl", "train", *tokens))
    if command.config is None:
        raise InputError(command.reason, remedy="write `axolotl advise config.yml [--key value]`")
    cloud = cloud_of(command, options.gpus)
    session, config = session_of(command, options), config_of(command, cloud)
    if not is_config(config):
        raise no_config(config.file)
    hardware = hardware_of(command, config, session, cloud)
    report = check_config(config, session, hardware=hardware).report
    with unheard():
        say([report], session)
    return exit_code([report], [], session)
