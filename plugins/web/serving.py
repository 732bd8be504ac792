"""The page's files, from this machine to its own browser."""

import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from advisor.errors import InputError

POLICY = (
    "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self' blob: https://huggingface.co;"
    " img-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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

    def send_head(self) -> BytesIO | BinaryIO | None:
        """One file, or its headers alone; another site that points its name here gets neither."""
        if self.headers.get("Host", "").partition(":")[0] not in {ADDRESS, "localhost"}:
            self.send_error(403)
            return None
        if "\0" in self.translate_path(self.path):
            self.send_error(404)
            return None
        return super().send_head()

    def list_directory(self, path: str | os.PathLike[str]) -> None:  # noqa: ARG002 (the library's name)
        """Folders are not listed."""
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is said of each file."""


def server_of(site: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the files below a folder. ``InputError`` where the port is taken."""
    try:
        return ThreadingHTTPServer((ADDRESS, port), partial(Handler, directory=str(site)))
    except OSError as error:
        raise InputError(f"port {port}: {error.strerror}", remedy="leave `--port` out") from error
