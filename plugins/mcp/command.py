"""``advisor mcp``: tools for agents, over standard input and output."""

import os
import sys
from typing import Any

import click

from advisor.cli.group import GPUS_HELP, Telling, rules_option
from advisor.errors import InputError
from advisor.session import RunOptions

from .surrogates import whole


@click.command("mcp", cls=Telling, short_help="Serve the advisor to agents (MCP over stdio).")
@click.option("--root", metavar="DIR", default=".", help="Files below it may be read (default: the working directory).")
@click.option("--gpus", metavar="SPEC", help=f"{GPUS_HELP} For calls that name no other.")
@rules_option
def command(root: str, gpus: str | None, rules: tuple[str, ...]) -> None:
    """Serve check, estimate, plan, hardware and explain to agents (MCP over stdio)."""
    folder = os.path.realpath(root)
    if not os.path.isdir(folder):
        raise InputError("is not a folder", root, remedy="name the folder of the configs: --root DIR")
    server = built(folder, RunOptions(gpus=gpus, rules=tuple(map(os.path.abspath, rules)), details=True))
    sys.stdin = whole(sys.stdin)
    # axolotl resolves `deepspeed:` from the working directory, and so do the tools.
    os.chdir(folder)
    server.run()


def built(folder: str, options: RunOptions) -> Any:
    """The server; an ``InputError`` where the SDK is not installed."""
    try:
        from .server import server_of
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise InputError("`advisor mcp` needs the MCP SDK", remedy='pip install "axolotl-advisor[mcp]"') from error
    return server_of(folder, options)
