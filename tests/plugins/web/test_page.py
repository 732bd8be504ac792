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
from PIL import Image

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

    def __init__(self, browser: Any, address: str, size: tuple[int, int] = (1300, 900), *, starts: bool = True) -> None:
        viewport = {"width": size[0], "height": size[1]}
        self.context = browser.new_context(viewport=viewport, accept_downloads=True)
        self.tab = self.context.new_page()
        self.asked: list[str] = []
        self.errors: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        if not starts:
            self.tab.route("**/worker.js", lambda _: None)
        self.tab.goto(address)
        if starts:
            self.until("document.body.dataset.ready")
            self.settled()
        self.example = self.config

    # Playwright's own way evaluates a string, which the page's policy forbids.
    def until(self, condition: str) -> None:
        end = time.monotonic() + LONGEST
        while not self.tab.evaluate(f"() => Boolean({condition})"):
            assert time.monotonic() < end, f"{condition}: {self.tab.inner_text('#error')} {self.errors}"
            self.tab.wait_for_timeout(20)

    def settled(self, *kinds: str) -> None:
        for what in kinds or ("quick", "full"):
            self.until(f"document.body.dataset.{what} === document.body.dataset.version")

    def fill(self, name: str, text: str) -> None:
        self.tab.evaluate(
            "(name) => { const box = document.getElementById(`${name}-box`); if (box) box.open = true; }", name
        )
        self.tab.fill(f"#{name}", text)

    def open(self, example: str) -> None:
        self.tab.click(f"[data-example={example}]")
        self.settled()

    def slide(self, name: str, place: int, event: str = "input") -> None:
        self.tab.evaluate(
            "([name, place, event]) => { const slider = document.getElementById(name); slider.value = place;"
            " slider.dispatchEvent(new Event(event)); }",
            [name, place, event],
        )

    def text(self, name: str) -> str:
        return self.tab.inner_text(f"#{name}")

    @property
    def config(self) -> str:
        return self.tab.input_value("#config")


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Page:
    return Page(browser, address)


@pytest.mark.parametrize("size", [(375, 700), (768, 1024), (1280, 800)])
def test_the_first_verdict_is_there_before_python_runs_and_without_scrolling(
    browser: Any, address: str, size: tuple[int, int]
):
    page = Page(browser, address, size, starts=False)
    assert "Does not fit: needs" in page.text("quick") and "$" in page.text("quick")
    bottom = page.tab.evaluate("() => document.querySelector('#quick').getBoundingClientRect().bottom")
    assert bottom < size[1] / 1.6
    before = page.config
    page.tab.click("#quick [data-way=A]")
    assert page.config != before and "micro_batch_size: 1" in page.config
    page.context.close()


def test_a_config_is_checked_while_it_is_typed(page: Page):
    assert "Does not fit: needs" in page.text("quick") and "Apply A" in page.text("quick")
    assert "The flowchart" in page.text("full")
    page.tab.click("#full summary:has-text('Ledger')")
    page.fill("config", page.config.replace("micro_batch_size: 8", "micro_batch_size: 1\nlora_dropuot: 0.1"))
    page.settled()
    assert "Fits: needs" in page.text("quick") and "lora_dropuot" in page.text("memory")
    assert page.tab.get_attribute("#full details:has-text('Ledger')", "open") is not None
    page.tab.select_option("#card", "a100-80gb-sxm")
    page.tab.fill("#count", "8")
    page.settled()
    assert "on each of 8x A100-80GB SXM" in page.text("quick")
    assert page.errors == []


def test_a_model_and_gpus_from_the_menus_become_a_config(page: Page):
    page.open("lora-8b")
    page.tab.select_option("#method", "lora")
    page.tab.select_option("#base", "Qwen/Qwen3-8B")
    page.until("document.getElementById('config').value.includes('base_model: Qwen/Qwen3-8B')")
    page.until("document.querySelector('#ways [data-kind=qlora]') && !document.querySelector('#ways.stale')")
    page.settled()
    assert "Fits: needs" in page.text("quick") and "adapter: lora" in page.config
    page.tab.select_option("#card", "rtx-3090")
    page.tab.fill("#count", "1")
    page.settled("quick")
    assert "LoRA on 1x RTX 3090" in page.config
    page.tab.select_option("#method", "full")
    page.until("document.getElementById('json').value.includes('zero_optimization')")
    page.settled()
    assert "deepspeed: run.deepspeed.json" in page.config and "Does not fit" in page.text("quick")
    assert "LoRA" in page.text("options")


def test_a_way_of_new_is_taken_by_its_button(page: Page):
    page.tab.select_option("#method", "auto")
    page.until("document.querySelector('#ways [data-kind=qlora]') && !document.querySelector('#ways.stale')")
    page.tab.click("#ways [data-kind=qlora]")
    page.settled()
    assert "load_in_4bit: true" in page.config and "Fits: needs" in page.text("quick")
    assert page.tab.input_value("#method") == "qlora" and page.tab.input_value("#json") == ""


def test_a_slider_counts_while_it_moves_and_is_written_when_let_go(page: Page):
    page.open("lora-8b-large-batch")
    before = page.config
    page.slide("batch", 0)
    page.settled("quick")
    assert "Fits: needs" in page.text("quick") and page.config == before
    page.slide("batch", 1)
    page.slide("batch", 1, "change")
    page.settled("quick")
    assert page.config == before.replace("micro_batch_size: 8", "micro_batch_size: 2")
    page.slide("length", 13, "change")
    assert page.config.count("sequence_len: 8192") == 1
    page.tab.focus("#config")
    page.tab.keyboard.press("Control+z")
    page.tab.keyboard.press("Control+z")
    assert page.config == before
    page.settled()


def test_tokens_change_time_and_cost_alone(page: Page):
    page.open("lora-8b")
    hundred = page.text("quick")
    page.slide("tokens", 9)
    page.settled("quick")
    assert "100M tokens" in hundred and "1B tokens" in page.text("quick")
    assert hundred.partition("\n")[0] == page.text("quick").partition("\n")[0]
    page.slide("tokens", 6)


def test_gpus_of_the_comment_count_and_other_gpus_are_written_into_it(page: Page):
    page.fill("config", "# advisor: gpus=2n8x a100-80gb host=1TiB net=100Gb/s\n" + page.example.partition("\n")[2])
    page.fill("config", page.config.replace("# advisor: gpus=1x rtx-4090\n", ""))
    page.settled()
    shown = {name: page.tab.input_value(f"#{name}") for name in ("count", "card", "nodes", "host")}
    assert shown == {"count": "8", "card": "a100-80gb-sxm", "nodes": "2", "host": "1024"}
    assert "2 nodes of 8x A100-80GB SXM" in page.text("quick")
    page.tab.select_option("#card", "h100-80gb-sxm")
    page.settled("quick")
    assert page.config.startswith("# advisor: gpus=2n8x h100-80gb-sxm host=1024GiB net=100Gb/s\n")
    assert "2 nodes of 8x H100-80GB SXM" in page.text("quick")


def test_an_example_brings_its_json_and_its_gpus(page: Page):
    page.open("zero2-8b")
    assert '"stage": 2' in page.tab.input_value("#json") and page.tab.input_value("#count") == "8"
    assert "Fits: needs" in page.text("quick") and "8x A100-80GB SXM" in page.text("quick")


def test_what_cannot_be_read_is_said_and_the_last_answer_stays_faint(page: Page):
    before = page.config
    page.fill("config", "base_model: [")
    page.until("document.body.dataset.quick === document.body.dataset.version")
    assert "not YAML" in page.tab.inner_text("#error") and page.tab.is_visible("#quick.stale")
    page.fill("config", before)
    page.settled()
    assert page.tab.inner_text("#error") == ""


def test_an_option_is_applied_and_taken_back_by_keys_and_by_a_button(page: Page):
    page.open("lora-8b-large-batch")
    page.tab.click("#options [data-way=A]")
    page.settled("quick")
    after = page.config
    assert after == page.example.replace("batch_size: 8", "batch_size: 1").replace("on_steps: 1", "on_steps: 8")
    assert "Fits: needs 19.8 of 23.1 GiB" in page.text("quick")
    page.tab.focus("#config")
    page.tab.keyboard.press("Control+z")
    assert page.config == page.example
    page.tab.keyboard.press("Control+Shift+z")
    assert page.config == after
    page.tab.click("#undo-button")
    page.settled("quick")
    assert page.config == page.example and "Does not fit" in page.text("quick")


def test_what_was_typed_can_be_typed_back_past_an_option(page: Page):
    page.open("lora-8b-large-batch")
    page.tab.focus("#config")
    page.tab.keyboard.press("Control+End")
    page.tab.keyboard.type("# mine")
    page.settled()
    page.tab.click("#options [data-way=A]")
    page.tab.focus("#config")
    page.tab.keyboard.press("Control+z")
    assert page.config == page.example + "# mine"
    page.fill("config", page.example)


def test_other_hardware_is_taken_by_its_button(page: Page):
    page.open("lora-8b-large-batch")
    page.settled("others")
    page.tab.click("#options [data-way=C1]")
    page.settled("quick")
    assert page.tab.input_value("#count") == "2" and "on each of 2x RTX 4090" in page.text("quick")
    assert "gpus=2x rtx-4090" in page.config
    page.tab.click("#undo-button")
    page.settled()
    assert page.tab.input_value("#count") == "1" and page.config == page.example


def test_cards_stand_side_by_side_and_one_is_taken(page: Page):
    page.open("lora-8b-large-batch")
    page.settled("matrix")
    assert "cost" in page.text("cards") and "1x RTX 5090" in page.text("cards")
    page.tab.click("#cards tr:has-text('1x RTX 5090') button")
    page.settled("quick")
    assert "RTX 5090" in page.text("quick") and page.tab.input_value("#card") == "rtx-5090"
    page.tab.click("#undo-button")
    page.settled()


def test_texts_are_downloaded(page: Page):
    page.until("document.querySelector('#files a')")
    with page.tab.expect_download() as download:
        page.tab.click("#files a")
    assert download.value.suggested_filename == "run.yaml"
    assert Path(download.value.path()).read_text() == page.config


def test_the_verdict_is_saved_as_a_picture(page: Page):
    page.open("lora-8b-large-batch")
    with page.tab.expect_download() as download:
        page.tab.click("#picture-button")
    with Image.open(download.value.path()) as picture:
        assert picture.format == "PNG" and picture.size == (1200, 630)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
    assert {(255, 255, 255), (0xB3, 0x20, 0x3A)} <= colours and len(colours) > 50


def test_a_config_json_comes_from_the_hub_on_a_click_alone(browser: Any, address: str):
    page = Page(browser, address)
    heard: list[str] = []

    def hub(route: Any) -> None:
        heard.append(route.request.url)
        known = route.request.url.endswith("/nobody/mine/resolve/main/config.json")
        headers = {"Access-Control-Allow-Origin": "*"}
        route.fulfill(status=200 if known else 401, headers=headers, body=MODEL if known else "")

    page.context.route("https://huggingface.co/**", hub)
    page.fill("config", page.config.replace("meta-llama/Llama-3.1-8B", "nobody/mine"))
    page.settled()
    assert "unknown model" in page.text("quick") and page.tab.input_value("#hub-name") == "nobody/mine"
    assert heard == []
    page.tab.click("#hub-button")
    page.until("document.getElementById('model').value")
    page.settled()
    assert "needs" in page.text("quick") and json.loads(page.tab.input_value("#model"))["model_type"] == "llama"
    page.tab.select_option("#base", "")
    page.tab.fill("#hub-name", "nobody/gated")
    page.tab.click("#hub-button")
    page.until("document.getElementById('said').textContent.includes('is gated')")
    assert heard == [f"https://huggingface.co/nobody/{name}/resolve/main/config.json" for name in ("mine", "gated")]
    assert page.errors == []
    page.context.close()


def test_a_json_and_a_model_of_ones_own_count(page: Page):
    page.fill("config", page.example.replace("meta-llama/Llama-3.1-8B", "nobody/mine") + "deepspeed: ds.json\n")
    page.fill("json", '{"zero_optimization": {"stage": 9}}')
    page.settled()
    assert "must be 0, 1, 2 or 3" in page.text("quick")
    page.fill("json", '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}')
    page.settled()
    assert "unknown model" in page.text("quick")
    page.fill("model", MODEL)
    page.settled()
    assert "ZeRO-3" in page.tab.text_content("#quick") and "GiB usable" in page.text("memory")


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
        assert len(workers) in {2, 3}
        assert {worker.evaluate(asking) for worker in workers} == {"refused"}
        elsewhere.shutdown()
    assert Listener.heard == []


def test_nothing_leaves_the_page(page: Page, address: str):
    assert all(url.startswith((address, f"blob:{address}")) for url in page.asked), page.asked
    assert address + "packed.js" not in page.asked
    page.asked.clear()
    page.fill("config", page.example.replace("micro_batch_size: 8", "micro_batch_size: 4"))
    page.settled()
    assert set(page.asked) <= {address + "icon.svg"}
    refuses_to_send(page)
    page.fill("config", page.example)


def test_the_page_works_from_disk_without_a_server(browser: Any, site: Path):
    page = Page(browser, (site / "index.html").as_uri())
    assert "Does not fit: needs" in page.text("quick")
    page.tab.click("#options [data-way=A]")
    page.settled()
    assert page.config != page.example and "Fits: needs" in page.text("quick")
    page.fill("config", page.config + "lora_dropuot: 0.1\n")
    page.settled()
    assert "lora_dropuot" in page.text("memory")
    page.until("location.hash.length > 20")
    page.tab.wait_for_timeout(1000)
    typed = page.config
    page.tab.reload()
    page.until("document.body.dataset.ready")
    page.settled()
    assert page.config == typed and "lora_dropuot" in page.text("memory")
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
    assert "connect-src 'self' blob: https://huggingface.co;" in POLICY


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
            assert b"<h1>advisor</h1>" in answer.read()
        process.terminate()


def test_a_folder_without_the_page_is_an_error(tmp_path: Path):
    command = [sys.executable, "-m", "advisor", "web", "--no-open", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "make web" in done.stderr
