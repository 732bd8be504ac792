"""``advisor server``: the language server, over standard input and output."""

import os
from typing import Any

import click

from advisor.cli.group import GPUS_HELP, Telling, rules_option
from advisor.errors import InputError


@click.command("server", cls=Telling, short_help="Serve findings and fixes to an editor (LSP over stdio).")
@click.option("--gpus", metavar="SPEC", help=f"{GPUS_HELP} For files that say none; editors may send it too.")
@rules_option
@click.option("--stdio", is_flag=True, help="Nothing: editors add it, and there is no other way.")
def command(gpus: str | None, rules: tuple[str, ...], stdio: bool) -> None:  # noqa: ARG001 (said by editors)
    """Serve findings, fixes and numbers to an editor (LSP over stdio)."""
    started(gpus, tuple(map(os.path.abspath, rules))).start_io()


def started(gpus: str | None, rules: tuple[str, ...] = ()) -> Any:
    """The server; an ``InputError`` where its library is not installed."""
    try:
        from .server import server_of
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in {"pygls", "lsprotocol"}:
            raise
        raise InputError("`advisor server` needs pygls", remedy='pip install "axolotl-advisor[lsp]"') from error
    return server_of(gpus, rules)
