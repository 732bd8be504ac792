"""``advisor web``: the page, from this machine to its own browser."""

from pathlib import Path

import click

import advisor
from advisor.cli.main import Telling
from advisor.errors import InputError
from advisor.streams import aside
from advisor.util import cache_folder


@click.command("web", cls=Telling)
@click.option("--folder", metavar="DIR", help="A page that `make web` has built.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
def command(folder: str | None, port: int, no_open: bool) -> None:
    """Open the page in the browser: paste a config, see what the report shows (127.0.0.1 only)."""
    site = Path(folder) if folder is not None else built()
    if not (site / "index.html").is_file():
        raise InputError("is no built page", str(site), remedy="name the folder that `make web` has written")
    from .serving import ADDRESS, server_of

    with server_of(site, port) as server:
        address = f"http://{ADDRESS}:{server.server_port}/"
        click.echo(f"{address} (Ctrl-C ends it)")
        if not no_open:
            import webbrowser

            webbrowser.open(address)
        server.serve_forever()


def built() -> Path:
    """The page of this version, built on the first use."""
    site = cache_folder() / "axolotl-advisor" / f"web-{advisor.__version__}"
    if not (site / "advisor.zip").is_file():
        from .build import build

        aside(f"building the page in {site}")
        build(site)
    return site
