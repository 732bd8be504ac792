"""``axolotl advise``: what ``advisor check`` says of the run that ``axolotl train`` would start with the same words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from advisor.cli.check import exit_code
from advisor.cli.launch import hardware
from advisor.cli.launchers import read_command
from advisor.cli.options import asked_of, options_for, settings_for
from advisor.cli.output import say
from advisor.documents import read
from advisor.engine.check import check_run
from advisor.errors import InputError
from advisor.opening import is_config, open_run
from advisor.run.installed import installed_versions
from advisor.run.overrides import overridden
from advisor.run.stack import read_stack

LEFT_OUT = {"isolated": False, "model_config": None, "stack": None, "offline": True, "exit_zero": False}


def advise_command(tokens: Sequence[str], **given: Any) -> int:
    """0 clean, 1 findings, 2 could not run."""
    command = read_command(("axolotl", "train", *tokens))
    if command.config is None:
        raise InputError(command.reason, remedy="write `axolotl advise config.yml [--key value]`")
    given = {**LEFT_OUT, **given}
    settings = settings_for([command.config], given)
    asked = asked_of(given, settings)
    config = overridden(read(command.config), command.overrides)
    if not is_config(config):
        raise InputError("is not an axolotl config: it has no `base_model`", config.file, remedy="name an axolotl YAML")
    stack = read_stack({**settings.stack, **installed_versions()})
    found = hardware(command, config, given["gpus"], asked.context)
    opened = open_run(config, replace(asked.context, hardware=found, stack=stack))
    report = check_run(opened, options_for(opened, asked))
    say([report], asked, given)
    return exit_code([report], [], asked, given)
