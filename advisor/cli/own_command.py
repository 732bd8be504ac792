"""What a command of the advisor is, and the group that also knows those of plugins."""

import os
from itertools import takewhile
from typing import Any

import click

from advisor.cli.group import Telling
from advisor.errors import InputError
from advisor.util import path_shown

PLUGINS = "advisor.commands"


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
