"""``axolotl advise config.yml --key value``, through axolotl's entry points: axolotl/cli/plugins.py:13-15@0.19.0."""

import sys
from typing import Any

import click

from advisor.cli.group import FORMAT_HELP, GPUS_HELP, QUIET_HELP, VERBOSE_HELP, Telling, rules_option


@click.command(cls=Telling, context_settings={"ignore_unknown_options": True})
@click.argument("tokens", nargs=-1, required=True, metavar="CONFIG [--KEY VALUE]...", type=click.UNPROCESSED)
@click.option("--gpus", metavar="SPEC", help=GPUS_HELP + " Default: the GPUs of this machine.")
@click.option("-q", "--quiet", is_flag=True, help=QUIET_HELP)
@click.option("-v", "--verbose", is_flag=True, help=VERBOSE_HELP)
@click.option("--output-format", "formats", multiple=True, metavar="FORMAT[=FILE]", help=FORMAT_HELP)
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "note"]), help="The level from which the exit code is 1."
)
@click.option("--flowchart", metavar="NAME", help="default, safe-first, huggingface or pytorch.")
@rules_option
def advise(tokens: tuple[str, ...], **given: Any) -> None:
    """Say whether a run fits, what is wrong with it, and the smallest patch that fixes it.

    Takes what `axolotl train` takes: the keys that override the config, and `-- LAUNCHER OPTIONS`.
    """
    from advisor.cli.options import CheckOptions

    from .advising import advise_command

    sys.exit(advise_command(tokens, CheckOptions(**given)))
