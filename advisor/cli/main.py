"""The commands, thin: read, judge, say."""

import sys

import click

from advisor.about import VERSION
from advisor.cli.group import rules_option
from advisor.cli.of_configs import check, estimate, hardware
from advisor.cli.of_new import new
from advisor.cli.of_runs import launch, oom, verify
from advisor.cli.own_command import PLUGINS, Group

__all__ = ["PLUGINS", "main"]


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="advisor %(version)s")
def main() -> None:
    """Check before the launch whether an axolotl run fits, and find the smallest patch with which it does."""


for command in (new, check, estimate, hardware, launch, verify, oom):
    main.add_command(command)


@main.command()
@click.argument("name", required=False)
@click.option("--output-format", "format_", type=click.Choice(["full", "json"]), default="full")
@rules_option
def rule(name: str | None, format_: str, rules: tuple[str, ...]) -> None:
    """Print the page of a rule, or the list of rules."""
    from advisor.cli.rule import rule_command

    sys.exit(rule_command(name, format_, rules))


@main.command()
@click.option("--runs", metavar="FILE", help="Your own: blocks of `advisor verify`, or lines of tests/gpu/measure.py.")
@click.option("--time", "of_time", is_flag=True, help="The time of a step instead of its memory.")
@click.option("--output-format", "format_", type=click.Choice(["full", "json"]), default="full")
def accuracy(runs: str | None, of_time: bool, format_: str) -> None:
    """Compare the estimates with published runs.

    Prints how far they are from measured memory, and how far other estimators are.
    """
    from advisor.cli.accuracy import accuracy_command, timing_command

    sys.exit(timing_command(runs, format_) if of_time else accuracy_command(runs, format_))


@main.command("test")
@click.argument("folder", required=False, metavar="[DIR]")
def test_rules(folder: str | None) -> None:
    """Run the examples inside rules.

    The advisor's own, or those of an organisation's folder.
    """
    from advisor.cli.rule import test_command

    sys.exit(test_command(folder))


@main.command()
@click.argument("folder", required=False, metavar="[DIR]")
@click.option("--list", "lists", is_flag=True, help="What is trusted, and whether it is still as it was.")
@click.option("--remove", is_flag=True, help="Trust the rules of DIR no more.")
def trust(folder: str | None, lists: bool, remove: bool) -> None:
    """Let the rules run that the settings of a folder name.

    Rules are code, so they are left out until then, and again once a file among them changes.
    """
    from advisor.cli.trust import trust_command

    sys.exit(trust_command(folder, lists=lists, remove=remove))
