"""``advisor web``: the page, from this machine to its own browser."""

import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

import advisor
from advisor.cli.main import Telling
from advisor.errors import InputError
from advisor.util import cache_folder

POLICY = (
    "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self';"
    " style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {".wasm": "application/wasm", ".mjs": "text/javascript", ".js": "text/javascript"}
ADDRESS = "127.0.0.1"


class Handler(SimpleHTTPRequestHandler):
    """Files of one folder, with the content policy, to whoever asks under this machine's own names."""

    def guess_type(self, path: str | os.PathLike[str]) -> str:
        """The type of a file; not every machine knows those of WebAssembly and modules."""
        return TYPES.get(os.path.splitext(path)[1]) or super().guess_type(path)

    def end_headers(self) -> None:
        """The policy with every answer."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def do_GET(self) -> None:
        """One file; another site that points its name here gets nothing."""
        if self.headers.get("Host", "").partition(":")[0] not in {ADDRESS, "localhost"}:
            self.send_error(403)
            return
        super().do_GET()

    def list_directory(self, path: str | os.PathLike[str]) -> None:  # noqa: ARG002 (the library's name)
        """Folders are not listed."""
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is said of each file."""


@click.command("web", cls=Telling)
@click.option("--folder", metavar="DIR", help="A page that `make web` has built.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
def command(folder: str | None, port: int, no_open: bool) -> None:
    """Open the page in the browser: paste a config, see what the report shows (127.0.0.1 only)."""
    site = Path(folder) if folder is not None else built()
    if not (site / "index.html").is_file():
        raise InputError("is no built page", str(site), remedy="name the folder that `make web` has written")
    with server_of(site, port) as server:
        address = f"http://{ADDRESS}:{server.server_port}/"
        click.echo(f"{address} (Ctrl-C ends it)")
        if not no_open:
            import webbrowser

            webbrowser.open(address)
        server.serve_forever()


def server_of(site: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the files below a folder. ``InputError`` where the port is taken."""
    try:
        return ThreadingHTTPServer((ADDRESS, port), partial(Handler, directory=str(site)))
    except OSError as error:
        raise InputError(f"port {port}: {error.strerror}", remedy="leave `--port` out") from error


def built() -> Path:
    """The page of this version, built on the first use."""
    site = cache_folder() / "axolotl-advisor" / f"web-{advisor.__version__}"
    if not (site / "advisor.zip").is_file():
        from .build import build

        click.echo(f"building the page in {site}", err=True)
        build(site)
    return site
