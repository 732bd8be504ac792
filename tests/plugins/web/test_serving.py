"""The page's server answers its own names alone, whatever is asked; a link to the page unpacks to a bounded size."""

import base64
import http.client
import json
import shutil
import subprocess
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from advisor.plugins.web.serving import ADDRESS, server_of

LINK = Path(__file__).parents[3] / "plugins" / "web" / "static" / "link.js"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "index.html").write_text("a page")
    (tmp_path.parent / "secret").write_text("SECRET")
    with server_of(tmp_path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def asked(port: int, method: str, path: str, host: str = ADDRESS) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example"])
def test_another_name_gets_nothing(port: int, method: str, host: str):
    assert asked(port, method, "/index.html")[0] == 200
    status, body = asked(port, method, "/index.html", host)
    assert status == 403 and b"a page" not in body


@pytest.mark.parametrize("path", ["/a.js%00", "/%00", "/../secret", "/%2e%2e/secret", "/..%2fsecret%00.js"])
def test_a_path_that_is_none_is_not_found(port: int, path: str):
    for method in ("GET", "HEAD"):
        status, body = asked(port, method, path)
        assert status == 404 and b"SECRET" not in body


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_link_that_unpacks_without_end_is_none():
    deflate = zlib.compressobj(9, wbits=-15)
    bomb = deflate.compress(b'"' + b"a" * (200 << 20) + b'"') + deflate.flush()
    code = """
        const { ReadableStreamDefaultReader: Reader } = globalThis, read = Reader.prototype.read;
        let total = 0;
        Reader.prototype.read = async function () {
          const found = await read.call(this);
          total += found.value?.length ?? 0;
          return found;
        };
        (async () => {
          const small = await unpacked(await packed({ config: "a: 1" }));
          total = 0;
          const large = await unpacked(BOMB);
          console.log(JSON.stringify([small, large, total]));
        })();
    """
    script = LINK.read_text() + code.replace("BOMB", json.dumps(base64.urlsafe_b64encode(bomb).decode()))
    done = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True)
    small, large, total = json.loads(done.stdout)
    assert small == {"config": "a: 1"} and large is None
    assert 0 < total < 16 << 20
