"""What all commands share, those of plugins too: one clear line where something goes wrong, and common options."""

import sys
from typing import Any

import click

from advisor.errors import InputError
from advisor.report import FORMATS
from advisor.streams import aside, silence_output, take_places, write_all_letters

GPUS_HELP = 'The target: "8x a100-80gb", "2n8x h100-80gb host=1TiB", "rtx-4090 free=22GiB".'
RULES_HELP = "Run the rules of this folder, instead of those that settings name. May repeat."
FORMAT_HELP = f"{' or '.join(', '.join(FORMATS).rsplit(', ', 1))}; FORMAT=FILE writes it to a file. May repeat."
QUIET_HELP = "Say the answer alone: fits, what to do, the ways out."
VERBOSE_HELP = "Also say why, with ranges, sources and each step's own diff."
rules_option = click.option("--rules", metavar="FOLDER", multiple=True, help=RULES_HELP)


class Telling(click.Command):
    """Turns what goes wrong into one clear line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        take_places()
        write_all_letters()
        try:
            return super().invoke(ctx)
        except InputError as error:
            from advisor.report import render_error
            from advisor.report.terminal import colored

            aside(render_error(error, color=colored(sys.stderr)))
            ctx.exit(2)
        except KeyboardInterrupt:
            aside("interrupted")
            ctx.exit(130)
        except BrokenPipeError:
            silence_output()
            ctx.exit(2)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            aside(in_one_line(error))
            silence_output()
            ctx.exit(2)


def in_one_line(error: Exception) -> str:
    """The advisor's own trouble, in letters that every terminal has."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    said = " ".join(f"error: {type(error).__name__}: {reason}".split())
    return said.encode("ascii", "backslashreplace").decode()
