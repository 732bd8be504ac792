"""``advisor web``: the page, from this machine to its own browser."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import click

from advisor.cli.group import Telling
from advisor.errors import InputError
from advisor.streams import aside
from advisor.util import cache_folder

KEPT = 3
"""Pages in the cache: what was there before an upgrade may still be open. Each weighs 30 MB."""


@click.command("web", cls=Telling, short_help="Open the page in the browser (127.0.0.1 only).")
@click.option("--folder", metavar="DIR", help="A page that `make web` has built, or that of a release.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
def command(folder: str | None, port: int, no_open: bool) -> None:
    """Open the page in the browser: paste a config, see what the report shows (127.0.0.1 only)."""
    site = Path(folder) if folder is not None else built()
    if not (site / "index.html").is_file():
        raise InputError(
            "is no built page",
            str(site),
            remedy="name the folder that `make web` has written, or an unpacked page of a release",
        )
    from .serving import ADDRESS, server_of

    with server_of(site, port) as server:
        address = f"http://{ADDRESS}:{server.server_port}/"
        click.echo(f"{address} (Ctrl-C ends it)")
        if not no_open:
            import webbrowser

            webbrowser.open(address)
        server.serve_forever()


def built() -> Path:
    """The page of these very sources, built on their first use; the last few pages stay."""
    from .build import build, key
    from .fetching import settle

    cache = cache_folder() / "axolotl-advisor"
    site = cache / f"web-{key()}"
    if not site.is_dir():
        aside(f"building the page in {site}")
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as temporary:
                build(Path(temporary, "page"))
                settle(Path(temporary, "page"), site)
        except OSError as error:
            remedy = "name a cache that may be written in XDG_CACHE_HOME, or a built page: --folder DIR"
            raise InputError(f"the page cannot be built there: {error.strerror}", str(cache), remedy=remedy) from error
    with suppress(OSError):
        os.utime(site)
        for old in sorted(cache.glob("web-*"), key=os.path.getmtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return site
