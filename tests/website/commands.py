"""A page in Markdown for each command, with its options, and an index, from the commands themselves."""

from collections.abc import Iterator

import click

from advisor.cli.help import EXAMPLES, grouped_options, ordered
from advisor.cli.main import main

from .rules import fenced, prose


def files() -> dict[str, str]:
    """The text of each page by its name: ``index.md``, and one a command."""
    commands = {
        name: command
        for name in ordered(main.list_commands(click.Context(main)))
        if (command := main.get_command(click.Context(main), name)) and not command.hidden
    }
    return {"index.md": _index(commands), **{f"{name}.md": _page(name, one) for name, one in commands.items()}}


def _index(commands: dict[str, click.Command]) -> str:
    rows = [f"- [`advisor {name}`]({name}.md): {prose(one.get_short_help_str(1000))}" for name, one in commands.items()]
    return "\n\n".join(["# Commands", "\n".join(rows)]) + "\n"


def _page(name: str, command: click.Command) -> str:
    """What ``--help`` says: usage, options by group, examples."""
    ctx = click.Context(command, info_name=f"advisor {name}")
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    blocks = [f"# advisor {name}", prose(command.help or ""), fenced("text", usage)]
    if name in EXAMPLES:
        shown = "\n".join(f"{line}\n    # {purpose}" for line, purpose in EXAMPLES[name])
        blocks += ["## Examples", fenced("sh", shown)]
    return "\n\n".join([*blocks, *_options(command, ctx), "[All commands](index.md)"]) + "\n"


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    """Each group, and each option in it, under titles of their own, so that both have addresses."""
    for title, found in grouped_options(command, ctx):
        yield f"## {title}"
        for words, said in found:
            yield f"### `{words}`"
            yield prose(said)
