"""The words of the commands about a run that starts, or has died: ``launch``, ``verify``, ``oom``."""

import sys
from typing import Any

import click

from advisor.cli.own_command import OwnCommand
from advisor.cli.run_options import run_options


@click.command(cls=OwnCommand, context_settings={"ignore_unknown_options": True})
@click.argument("tokens", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@run_options
@click.option("--no-block", is_flag=True, help="Report what is wrong, but launch anyway.")
def launch(tokens: tuple[str, ...], no_block: bool, **given: Any) -> None:
    """Check the run that a command starts, then start it.

    Any launcher: axolotl, accelerate, torchrun, deepspeed, srun. Exits with 1 if the run is blocked, else as the
    command does: this process becomes it.
    """
    from advisor.cli.launch import launch_command
    from advisor.session import RunOptions

    sys.exit(launch_command(tokens, RunOptions(**given), no_block=no_block))


@click.command(cls=OwnCommand, context_settings={"ignore_unknown_options": True})
@click.argument("path", metavar="CONFIG")
@click.argument("tokens", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@run_options
@click.option("--steps", metavar="N", type=click.IntRange(min=2, max=100), default=3, help="Steps to train (3).")
@click.option("--cpu", is_flag=True, help="Without a GPU, for a tiny model: counts tensors instead.")
@click.option("-v", "--verbose", is_flag=True, help="Also print what the training said.")
def verify(path: str, tokens: tuple[str, ...], steps: int, cpu: bool, verbose: bool, **given: Any) -> None:
    """Train a few steps, and compare them with the estimate.

    axolotl's own training, with rows of the longest length: no checkpoint, no tracker, nothing sent. COMMAND is how you
    start it, for any launcher; `axolotl train` if it is left out. Exits with 1 if the estimate is wrong.
    """
    from advisor.cli.verify import verify_command
    from advisor.cli.verifying.planning import VerifyOptions
    from advisor.session import RunOptions

    sys.exit(verify_command(path, tokens, RunOptions(**given), VerifyOptions(steps, cpu, verbose)))


@click.command(cls=OwnCommand)
@click.argument("log", metavar="LOG")
@click.option("--config", metavar="PATH", help="The axolotl YAML of the run that died: adds the estimate and the plan.")
@run_options
def oom(log: str, config: str | None, **given: Any) -> None:
    """Explain an out-of-memory error from a run's log.

    What ran out, in which phase, full or in pieces, and what helps; with --config the edits that suffice.
    """
    from advisor.cli.oom import oom_command
    from advisor.session import RunOptions

    sys.exit(oom_command(log, config, RunOptions(**given)))
