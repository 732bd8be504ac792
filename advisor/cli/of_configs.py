"""The words of the commands about a config: ``check``, ``estimate``, ``hardware``."""

import sys
from typing import Any

import click

from advisor.cli.group import FORMAT_HELP, QUIET_HELP, VERBOSE_HELP
from advisor.cli.own_command import OwnCommand
from advisor.cli.run_options import Amount, row_length, run_options

EXCLUDE_HELP = (
    "Leave out what matches when folders are walked, as in a .gitignore: drafts, *.tmpl.yaml, a/**/old. "
    "Files that you name are checked. May repeat; adds to `exclude` in the settings."
)


@click.command(cls=OwnCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@run_options
@row_length
@click.option("--fix", is_flag=True, help="Write the safe edits: they do not change what is trained.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also edits that change what is trained.")
@click.option("--faster", is_flag=True, help="With --fix or --diff: also use the memory that is left to save time.")
@click.option("--diff", is_flag=True, help="Show what --fix would write, and write nothing.")
@click.option("-p", "--patch", is_flag=True, help="Prompt for each edit, as `git add -p` does.")
@click.option("-q", "--quiet", is_flag=True, help=QUIET_HELP)
@click.option("-v", "--verbose", is_flag=True, help=VERBOSE_HELP)
@click.option("--output-dir", metavar="DIR", help="Write patched copies there instead of the originals.")
@click.option("--output-format", "formats", multiple=True, metavar="FORMAT[=FILE]", help=FORMAT_HELP)
@click.option("-o", "--output", metavar="FILE", help="Write the report to a file.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    help="The level from which the exit code is 1 (default: error).",
)
@click.option("--select", multiple=True, metavar="RULE", help="Only these rules.")
@click.option(
    "--ignore", multiple=True, metavar="RULE", help="Skip these rules; a step is also taken off the flowchart."
)
@click.option("--validate", is_flag=True, help="Also validate with the installed axolotl and DeepSpeed.")
@click.option("--data", metavar="FILE", help="Hold the rows of FILE up to the entry of `datasets` that names it.")
@click.option("--changed-since", metavar="REV", help="Only configs that changed in git since REV.")
@click.option("--against", metavar="REV", help="Compare with REV: what is found there too does not count.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help=EXCLUDE_HELP)
@click.option(
    "--exit-zero", is_flag=True, help="Exit with 0 despite findings; usage and input errors still exit with 2."
)
def check(paths: tuple[str, ...], **given: Any) -> None:
    """Check configs: does it fit, what is wrong, which edits help.

    PATH is an axolotl YAML, a folder of them, or - for standard input.
    """
    from advisor.cli.check import check_command
    from advisor.cli.options import CheckOptions

    sys.exit(check_command(paths, CheckOptions(**given)))


@click.command(cls=OwnCommand)
@click.argument("path")
@run_options
@row_length
@click.option("--ledger", is_flag=True, help="Every term of every phase, with its arithmetic and source.")
@click.option("--output-format", "format_", type=click.Choice(["full", "json", "html"]), default="full")
@click.option("-o", "--output", metavar="FILE", help="Write to a file.")
@click.option("--tokens", metavar="N", help="Tokens of one epoch, as trained (200M): adds the hours of the run.")
@click.option("--max", "largest", metavar="KEY", help="The largest `sequence_len` or `micro_batch_size` that fits.")
@click.option("--price", metavar="PRICE", type=Amount(min=0), help="Of a GPU-hour: adds the cost of the run.")
@click.option("--prices", metavar="FILE", help='Prices by card, a TOML file: `"a100-80gb" = 1.89`.')
@click.option("--timeline", metavar="FILE", help="Draw what is alive when in a step, as SVG, and show it as blocks.")
def estimate(
    path: str,
    output: str | None,
    format_: str,
    ledger: bool,
    tokens: str | None,
    price: float | None,
    prices: str | None,
    largest: str | None,
    timeline: str | None,
    **given: Any,
) -> None:
    """Show where the memory of a config goes, and its time.

    By part and by phase against the card, with the arithmetic of each term.
    """
    from advisor.cli.estimate import EstimateOptions, estimate_command
    from advisor.session import RunOptions

    asked = EstimateOptions(output, format_, ledger, tokens, price, prices, largest, timeline)
    sys.exit(estimate_command(path, RunOptions(**given), asked))


@click.command(cls=OwnCommand)
@click.argument("path")
@run_options
@click.option("--cards", metavar="NAMES", help="Only these, such as `a100-80gb,h100`.")
@click.option("--tokens", metavar="N", help="Tokens of one epoch, as trained (200M): adds hours.")
@click.option("--price", metavar="PRICE", type=Amount(min=0), help="Of a GPU-hour, whatever the card.")
@click.option("--prices", metavar="FILE", help='Prices by card, a TOML file: `"a100-80gb" = 1.89`.')
@click.option("--within", metavar="TIME", help="Only what takes no longer, such as 6h or 2d.")
@click.option("--under", metavar="COST", type=Amount(min=0), help="Only what costs no more.")
@click.option("--all", "all_", is_flag=True, help="Every number of every card that would do.")
@click.option("--output-format", "format_", type=click.Choice(["full", "json", "markdown", "html"]), default="full")
def hardware(path: str, format_: str, all_: bool, **given: Any) -> None:
    """Show which GPUs, and how many, would work for a config.

    As written and with the flowchart's steps, with time and cost where they are known.
    """
    from advisor.cli.hardware import HardwareOptions, hardware_command
    from advisor.session import RunOptions

    own = {name: given.pop(name) for name in ("cards", "tokens", "price", "prices", "within", "under")}
    sys.exit(hardware_command(path, RunOptions(**given), HardwareOptions(**own, all=all_, format=format_)))
