"""The commands, thin: read, judge, say."""

import math
import os
import sys
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import click

from advisor.about import VERSION
from advisor.cli.group import FORMAT_HELP, GPUS_HELP, Telling, rules_option
from advisor.errors import InputError
from advisor.util import path_shown

PLUGINS = "advisor.commands"
EXCLUDE_HELP = (
    "Leave out what matches when folders are walked, as in a .gitignore: drafts, *.tmpl.yaml, a/**/old. "
    "Files that you name are checked. May repeat; adds to `exclude` in the settings."
)


class Amount(click.FloatRange):
    """A number from 0 on that ends: neither ``inf`` nor ``nan``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no amount.", param, ctx)
        return found


class OwnCommand(click.Command):
    """One of the advisor's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; a file that is called like an option, which ``*.yaml`` puts among them, is none."""
        words = () if ctx.ignore_unknown_options else args  # `launch` stops for nothing
        for word in takewhile(lambda word: word != "--", words):
            if word.startswith("-") and word != "-" and os.path.lexists(word):
                file = path_shown(word)
                remedy = f"`./{file}` if the file is meant; move the file if the option is"
                raise InputError(f"`{file}` is an option, and a file here is called so", remedy=remedy)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In groups, where there are many."""
        from advisor.cli.help import write_options

        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples."""
        from advisor.cli.help import write_examples

        write_examples(ctx.command.name or "", formatter)


class Group(Telling, click.Group):
    """Commands that do so: the advisor's own, and those of plugins, which are looked for where no own one answers."""

    command_class = OwnCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All of them, for the help."""
        from advisor.cli.help import ordered

        return ordered({*super().list_commands(ctx), *plugin_commands()})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In the order of their use, each in a line."""
        from advisor.cli.help import write_commands

        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        write_commands({name: command for name, command in found.items() if command is not None}, formatter)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; a plugin cannot take the name of one of the advisor's own."""
        own = super().get_command(ctx, cmd_name)
        if own is None and cmd_name in (plugins := plugin_commands()):
            return loaded(plugins[cmd_name])
        return own


def loaded(entry: Any) -> click.Command:
    """The command of an entry point; one that cannot be loaded says so when it is called, and not before."""
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        reason = str(error)

    def refuse() -> None:
        raise InputError(f"the command `{entry.name}` cannot be loaded: {reason}", remedy="install its package again")

    return click.Command(entry.name, callback=refuse, short_help="Cannot be loaded.", add_help_option=False)


def plugin_commands() -> dict[str, Any]:
    """The commands that installed packages add, by name: entry points, each a click command."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=PLUGINS)}


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="advisor %(version)s")
def main() -> None:
    """Check before the launch whether an axolotl run fits, and find the smallest patch with which it does."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say what a run is and where it will be."""
    for option in (
        click.option("--gpus", metavar="SPEC", help=GPUS_HELP),
        click.option(
            "--model-config",
            metavar="PATH|NAME",
            help="For an unknown model: its config.json, or the published model that it is a fine-tune of.",
        ),
        click.option(
            "--trace",
            is_flag=True,
            help="For an architecture without formulas: trace it once with transformers and cache the result.",
        ),
        click.option(
            "--stack",
            "stack",
            metavar="KEY=VALUE,...",
            help="Versions and conditions: torch=2.9.0,trainer=trl-sft; or `installed`.",
        ),
        click.option(
            "--flowchart",
            metavar="NAME|FILE",
            help="default, safe-first, huggingface or pytorch; or a TOML file of your own.",
        ),
        click.option(
            "--images",
            metavar="NxWxH",
            help="Images of a row, for runs with a processor: 2x1024x768 (default: one, of `image_size` or 1024x1024).",
        ),
        click.option("--isolated", is_flag=True, help="Read no settings file."),
        rules_option,
        click.option(
            "--offline/--online",
            default=True,
            help="Whether to fetch an unknown model's config from the hub (needs transformers).",
        ),
    ):
        command = option(command)
    return command


row_length = click.option(
    "--row-length",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tokens of a row: a second estimate where rows are neither packed nor padded. The verdict stays.",
)


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@run_options
@row_length
@click.option("--fix", is_flag=True, help="Write the safe edits: they do not change what is trained.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also edits that change what is trained.")
@click.option("--faster", is_flag=True, help="With --fix or --diff: also use the memory that is left to save time.")
@click.option("--diff", is_flag=True, help="Show what --fix would write, and write nothing.")
@click.option("-p", "--patch", is_flag=True, help="Prompt for each edit, as `git add -p` does.")
@click.option("-q", "--quiet", is_flag=True, help="Say the answer alone: fits, what to do, the ways out.")
@click.option("-v", "--verbose", is_flag=True, help="Also say why, with ranges, sources and each step's own diff.")
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


@main.command()
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


@main.command()
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


@main.command()
@click.argument("model")
@click.argument("data", required=False)
@run_options
@click.option(
    "--method",
    metavar="METHOD",
    default="auto",
    help="auto, full, lora or qlora; dpo for pairs. By default the data and the GPUs decide.",
)
@click.option("--sequence-len", metavar="N", type=click.IntRange(min=64), help="Tokens of the longest row.")
@click.option("--tokens", metavar="N", help="Tokens that are trained in all epochs together (20M): adds hours.")
@click.option("--hours", metavar="H", type=Amount(min=0, min_open=True), help="Keep what ends within H hours.")
@click.option("--price", metavar="PRICE", type=Amount(min=0), help="Of a GPU-hour: adds the cost of the run.")
@click.option("--rows-as", metavar="WORD", help="What the rows are, where they leave it open.")
@click.option("--chat/--base", "chats", default=None, help="Whether the model was trained to chat.")
@click.option("-o", "--output", metavar="FILE", default="run.yaml", help="Write to this file (run.yaml).")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: take every default.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def new(model: str, data: str | None, tokens: str | None, method: str, output: str, **given: Any) -> None:
    """Write a complete config for a model, rows and GPUs.

    As full fine-tune, LoRA or QLoRA: the fastest that fits, with the reason for each line. DATA is a file of rows.
    """
    from advisor.cli.new import Writing, new_command, request_of

    writing = Writing(given.pop("yes"), given.pop("force"))
    sys.exit(new_command(request_of(model, data, tokens, method, output, given), writing))


@main.command(context_settings={"ignore_unknown_options": True})
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


@main.command(context_settings={"ignore_unknown_options": True})
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


@main.command()
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
