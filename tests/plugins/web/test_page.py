"""The page, built and driven in a real browser: what it shows, what it asks the network, how soon it answers."""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from advisor.plugins.web.build import build
from advisor.plugins.web.serving import POLICY, server_of

from advisor.errors import InputError

from ...browser import CLIPPED, FAINT, launched, missing

pytestmark = pytest.mark.slow

LONGEST = 180
MODEL = json.dumps(
    {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 16}
    | {"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256}
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    try:
        build(folder)
    except InputError as error:
        missing(str(error))
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with server_of(site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


class Page:
    """The page in a tab."""

    def __init__(self, browser: Any, address: str, width: int = 1300) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True)
        self.tab = self.context.new_page()
        self.asked: list[str] = []
        self.errors: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.goto(address)
        self.until("document.body.dataset.ready")
        self.settled()
        self.example = self.config

    # Playwright's own way evaluates a string, which the page's policy forbids.
    def until(self, condition: str) -> None:
        end = time.monotonic() + LONGEST
        while not self.tab.evaluate(f"() => Boolean({condition})"):
            assert time.monotonic() < end, f"{condition}: {self.tab.inner_text('#error')} {self.errors}"
            self.tab.wait_for_timeout(20)

    def settled(self) -> None:
        for what in ("quick", "full", "matrix", "reserved"):
            self.until(f"document.body.dataset.{what} === document.body.dataset.version")

    def fill(self, name: str, text: str) -> None:
        self.tab.evaluate(
            "(name) => { const box = document.getElementById(`${name}-box`); if (box) box.open = true; }", name
        )
        self.tab.fill(f"#{name}", text)

    @property
    def config(self) -> str:
        return self.tab.input_value("#config")


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Page:
    return Page(browser, address)


def test_a_config_is_checked_while_it_is_typed(page: Page):
    assert "Does not fit 1x RTX 4090" in page.tab.inner_text("#quick")
    assert "then fits" in page.tab.inner_text("#full")
    assert "GPUs that would work" in page.tab.inner_text("#cards")
    page.tab.click("#full summary:has-text('Ledger')")
    page.fill("config", page.config.replace("micro_batch_size: 8", "micro_batch_size: 1\nlora_dropuot: 0.1"))
    page.settled()
    said = page.tab.inner_text("#quick")
    assert "Fits 1x RTX 4090" in said and "lora_dropuot" in said
    assert page.tab.get_attribute("#full details:has-text('Ledger')", "open") is not None
    page.tab.select_option("#card", "a100-80gb-sxm")
    page.tab.fill("#count", "8")
    page.settled()
    assert "Fits 8x A100-80GB SXM" in page.tab.inner_text("#quick")
    assert page.errors == []


def test_what_cannot_be_read_is_said_and_the_last_answer_stays_faint(page: Page):
    before = page.config
    page.fill("config", "base_model: [")
    page.until("document.body.dataset.quick === document.body.dataset.version")
    assert "not YAML" in page.tab.inner_text("#error") and page.tab.is_visible("#quick.stale")
    page.fill("config", before)
    page.settled()
    assert page.tab.inner_text("#error") == ""


def test_patched_files_are_taken_and_put_into_the_page(page: Page):
    page.fill("config", page.example)
    page.tab.select_option("#card", "rtx-4090")
    page.tab.fill("#count", "1")
    page.settled()
    with page.tab.expect_download() as download:
        page.tab.click("#files a")
    text = Path(download.value.path()).read_text()
    assert download.value.suggested_filename == "run.yaml" and text != page.example
    page.tab.click("#files button")
    page.settled()
    assert page.config == text and "Fits 1x RTX 4090" in page.tab.inner_text("#quick")


def test_a_json_and_a_model_of_ones_own_count(page: Page):
    page.fill("config", page.config.replace("meta-llama/Llama-3.1-8B", "nobody/mine") + "deepspeed: ds.json\n")
    page.fill("json", '{"zero_optimization": {"stage": 9}}')
    page.settled()
    assert "memory unknown" in page.tab.inner_text("#quick").lower()
    page.fill("model", MODEL)
    page.fill("json", '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}')
    page.settled()
    assert "ZeRO-3" in page.tab.inner_text("#quick") and "GiB are needed" in page.tab.inner_text("#quick")


def test_a_link_holds_all_of_it(browser: Any, address: str, page: Page):
    page.fill("config", page.config.replace("num_epochs: 1", "num_epochs: 3  # é𝄞"))
    page.settled()
    page.until("location.hash.length > 20")
    page.tab.wait_for_timeout(1000)
    url = page.tab.evaluate("() => location.href")
    other = Page(browser, url)
    assert other.config == page.config and other.tab.input_value("#json") == page.tab.input_value("#json")
    assert other.tab.input_value("#card") == page.tab.input_value("#card")
    assert other.tab.inner_text("#quick") == page.tab.inner_text("#quick")
    assert all("#" not in asked for asked in other.asked)
    other.context.close()


def test_files_are_dropped(page: Page):
    drop = """([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name));
      document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    }"""
    page.tab.evaluate(drop, ["my.yml", "base_model: Qwen/Qwen2.5-0.5B\n"])
    page.tab.evaluate(drop, ["config.json", MODEL])
    page.tab.evaluate(drop, ["zero.json", '{"zero_optimization": {"stage": 1}}'])
    page.until("document.getElementById('json').value.includes('zero_optimization')")
    assert page.config == "base_model: Qwen/Qwen2.5-0.5B\n" and page.tab.input_value("#model") == MODEL


class Listener(BaseHTTPRequestHandler):
    heard: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.heard.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


def refuses_to_send(page: Page) -> None:
    """Neither the page nor a worker of it reaches a server that would answer."""
    Listener.heard.clear()
    with HTTPServer(("127.0.0.1", 0), Listener) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        asking = f"() => fetch('http://127.0.0.1:{elsewhere.server_port}/leak').then(() => 'sent', () => 'refused')"
        assert page.tab.evaluate(asking) == "refused"
        workers = page.tab.workers
        assert len(workers) == 2
        assert [worker.evaluate(asking) for worker in workers] == ["refused", "refused"]
        elsewhere.shutdown()
    assert Listener.heard == []


def test_nothing_leaves_the_page(page: Page, address: str):
    assert all(url.startswith((address, f"blob:{address}")) for url in page.asked), page.asked
    assert address + "packed.js" not in page.asked
    page.asked.clear()
    page.fill("config", page.example.replace("micro_batch_size: 8", "micro_batch_size: 4"))
    page.settled()
    assert page.asked == []
    refuses_to_send(page)


def test_the_page_works_from_disk_without_a_server(browser: Any, site: Path):
    page = Page(browser, (site / "index.html").as_uri())
    assert "Does not fit 1x RTX 4090" in page.tab.inner_text("#quick")
    assert "GPUs that would work" in page.tab.inner_text("#cards")
    page.tab.click("#files button")
    page.settled()
    assert page.config != page.example and "Fits 1x RTX 4090" in page.tab.inner_text("#quick")
    page.fill("config", page.config + "lora_dropuot: 0.1\n")
    page.settled()
    assert "lora_dropuot" in page.tab.inner_text("#quick")
    page.until("location.hash.length > 20")
    page.tab.wait_for_timeout(1000)
    typed = page.config
    page.tab.reload()
    page.until("document.body.dataset.ready")
    page.settled()
    assert page.config == typed and "lora_dropuot" in page.tab.inner_text("#quick")
    assert all(url.startswith((site.as_uri() + "/", "blob:null/")) for url in page.asked), page.asked
    assert page.errors == []
    refuses_to_send(page)
    page.context.close()


def test_a_folder_that_lacks_a_file_says_which(browser: Any, site: Path, tmp_path: Path):
    shutil.copytree(site, tmp_path / "site", ignore=shutil.ignore_patterns("packed.js", "pyodide"))
    tab = browser.new_page()
    tab.goto((tmp_path / "site" / "index.html").as_uri())
    tab.wait_for_selector("#error:not(:empty)")
    assert "packed.js is missing: build the page again" in tab.inner_text("#error")
    tab.close()


def test_a_plain_server_of_the_folder_is_enough(browser: Any, site: Path):
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "-d", str(site), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().partition(" port ")[2].split()[0]
            page = Page(browser, f"http://127.0.0.1:{port}/")
            assert page.asked and all(url.startswith((f"http://127.0.0.1:{port}/", "blob:")) for url in page.asked)
            assert not page.errors
        finally:
            server.terminate()


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_clipped(page: Page, width: int):
    page.tab.set_viewport_size({"width": width, "height": 900})
    page.tab.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.tab.evaluate(CLIPPED) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(page: Page, scheme: str):
    page.settled()
    page.tab.emulate_media(color_scheme=scheme)
    assert page.tab.evaluate(FAINT) == []


def test_the_policy_of_the_file_is_that_of_the_server(site: Path):
    text = (site / "index.html").read_text()
    own = POLICY.removesuffix("; frame-ancestors 'none'")
    assert f'content="{own}"' in text
    assert "unsafe-eval'" not in POLICY.replace("wasm-unsafe-eval'", "")
    assert "connect-src 'self' blob:;" in POLICY


def test_the_server_answers_this_machine_alone(address: str):
    with urlopen(address) as answer:
        assert answer.headers["Content-Security-Policy"] == POLICY
    with pytest.raises(HTTPError, match="403"):
        urlopen(Request(address, headers={"Host": "evil.example"}))
    with pytest.raises(HTTPError, match="404"):
        urlopen(address + "pyodide/")


def test_the_command_prints_its_address(site: Path):
    command = [sys.executable, "-m", "advisor", "web", "--no-open", "--folder", str(site)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        with urlopen(said.split()[0]) as answer:
            assert b"<title>advisor</title>" in answer.read()
        process.terminate()


def test_a_folder_without_the_page_is_an_error(tmp_path: Path):
    command = [sys.executable, "-m", "advisor", "web", "--no-open", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "make web" in done.stderr
