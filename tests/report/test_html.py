"""The HTML report: what it says, how large it is, and how it looks in a real browser."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor.allocations.timeline import envelope, timeline
from advisor.cli.main import main
from advisor.documents import read
from advisor.opening import open_run
from advisor.record import replace as with_field
from advisor.report import render_check
from advisor.report.html_timeline import over_time
from advisor.run import Run
from advisor.session import RunOptions
from advisor.session.text import plain_session

from ..browser import CLIPPED, FAINT, axe_core, launched
from .samples import DOES_NOT_FIT, FITS, JSON_ALONE, LINT, ROOM, TIGHT

SAMPLES = Path(__file__).parents[2] / "sample_configs"
LARGEST = 40_000
VOID = {"meta", "br", "rect"}


class Balanced(HTMLParser):
    """Fails where a tag is not closed, or closed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def page(name: str, *more: str, gpus: str = "1x rtx-4090") -> str:
    result = CliRunner().invoke(
        main, ["check", "--isolated", "--gpus", gpus, "--output-format", "html", *more, str(SAMPLES / f"{name}.yaml")]
    )
    assert result.exit_code in {0, 1}, result.output
    return result.output


def opened_sample(name: str, gpus: str | None) -> Run:
    document = read(str(SAMPLES / f"{name}.yaml"))
    run = open_run(document, plain_session(RunOptions(gpus=gpus)).context).run
    return run if gpus else with_field(run, hardware=None)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.yaml")))
def test_every_sample_has_a_page_under_40_kb_without_a_script(name: str):
    text = page(name, gpus="2x a100-80gb")
    assert len(text.encode()) < LARGEST
    assert not parsed(text).seen & {"script", "link", "img", "iframe"}
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text


def test_a_page_has_verdict_memory_plan_time_cards_findings_and_ledger():
    text = page("full-8b-out-of-memory")
    order = [
        "Does not fit: needs ",
        "GiB needed</caption>",
        "Options</h3>",
        "Memory by phase",
        "Memory over a step",
        "The flowchart, rung by rung",
        "Time of a step",
        "Findings",
        "GPUs that would work",
        "Ledger: ",
    ]
    places = [text.index(words) for words in order]
    assert "advisor check --gpus" in text[: places[1]]
    assert places == sorted(places)
    assert "<ins>+" in text and "<del>-" in text
    assert "gradient_checkpointing: true" in text


def test_every_colour_and_line_of_before_and_after_has_its_word_next_to_it():
    text = page("full-8b-out-of-memory")
    start = text.index("GiB needed</caption>")
    drawn = text[start : text.index("</ul>", start)]
    roles = set(re.findall(r'<rect class="(\w+)"', drawn))
    words = dict(re.findall(r'<i class="(\w+)"></i>([^<]+)', drawn))
    assert roles <= set(words) and {"weights", "activations", "rest", "over", "limit"} <= roles
    assert words["limit"] == "the line: 23.1 usable" and words["over"] == "over the line"


def test_the_timeline_has_each_phase_once_and_few_points_a_part():
    text = page("full-8b-out-of-memory")
    start = text.index("Memory over a step")
    drawn = text[start : text.index("</ul>", start)]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', drawn)
    assert heads == ["Phase", "load", "forward", "backward", "optimizer step", "evaluation"]
    points: Counter[str] = Counter()
    for role, outline in re.findall(r'<path class="(\w+)" d="([^"]+)"', drawn):
        points[role] += len(re.findall("H", outline))
    assert set(points) >= {"weights", "gradients", "optimizer", "activations", "loss"}
    assert max(points.values()) <= 200 and points["activations"] > 20
    assert 'class="limit" y="' in drawn or "usable:" not in drawn


def test_the_timeline_is_as_high_as_what_is_allocated():
    run = opened_sample("full-8b-out-of-memory", "1x rtx-4090")
    found = envelope(run)
    assert found is not None
    whole = timeline(run)
    assert found.peak[1].allocated == whole.peak[1].allocated
    text = over_time(found, 1 << 50)
    tops = [int(y) for path in re.findall(r' d="M0 200([^"]+)"', text) for y in re.findall(r"V(\d+)", path)]
    assert min(tops) == round(200 * (1 - found.peak[1].allocated / (found.reserved * 1.03)))
    assert "usable" not in text


def test_a_run_that_no_tape_has_gets_no_timeline():
    assert envelope(opened_sample("qlora-8b-24gb", None)) is None
    assert over_time(None, 1) == ""


def test_a_step_that_changes_the_training_has_another_colour_than_one_that_does_not():
    text = render_check([DOES_NOT_FIT], "html")
    rows = dict(re.findall(r'<tr><th scope="row">([\w-]+)</th><td><svg[^>]*>(.*?)</svg>', text))
    assert 'class="same"' in rows["zero-2"] and 'class="changes"' not in rows["zero-2"]
    assert 'class="changes"' in rows["lora"] and 'class="same"' not in rows["lora"]


def test_the_waterfall_falls_from_step_to_step():
    text = render_check([DOES_NOT_FIT], "html")
    falls = re.findall(r'<rect class="(?:same|changes)" x="([\d.]+)%" width="([\d.]+)%"', text)
    ends = [(float(x), float(x) + float(width)) for x, width in falls]
    assert len(ends) == 3
    for (start, _), (_, end) in pairwise(ends):
        assert end == pytest.approx(start, abs=0.1)


def test_a_finding_leads_to_its_page_and_nothing_else_is_a_link():
    text = render_check([LINT], "html")
    assert re.findall(r'href="([^"]*)"', text) == ["https://docs.nvidia.com/cuda/ampere-tuning-guide/"]


def test_many_configs_begin_with_a_table_that_leads_to_them():
    text = render_check([FITS, TIGHT, LINT, ROOM, JSON_ALONE], "html")
    parsed(text)
    for place in range(5):
        assert f'href="#run-{place}"' in text and f'id="run-{place}"' in text


def test_names_and_messages_open_no_tag():
    hostile = "<img src=x onerror=alert(1)>\"'&"
    text = render_check([replace(DOES_NOT_FIT, file=hostile, summary=hostile, hardware=hostile)], "html")
    assert "<img" not in text
    parsed(text)


def test_estimate_and_hardware_have_pages_too(tmp_path: Path):
    config = str(SAMPLES / "lora-8b.yaml")
    runner = CliRunner()
    asked = ["--isolated", "--gpus", "4x-h100-80gb", "--tokens", "10M", "--price", "2", "--output-format", "html", "-o"]
    shown = runner.invoke(main, ["estimate", *asked, str(tmp_path / "run.html"), config])
    assert shown.exit_code == 0
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    parsed(text)
    assert "whole run" in text and "a GPU-hour" in text and len(text) < LARGEST
    cards = runner.invoke(main, ["hardware", "--isolated", "--output-format", "html", "--cards", "h100", config])
    parsed(cards.output)
    assert cards.exit_code == 0 and "1x H100-80GB SXM" in cards.output


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "plan": page("full-8b-out-of-memory"),
        "offload": page("zero3-32b-offload", gpus="8x h100-80gb host=1TiB"),
        "many": render_check([FITS, TIGHT, DOES_NOT_FIT, LINT, ROOM, JSON_ALONE], "html"),
        "long": render_check([replace(DOES_NOT_FIT, file="a-very-long-name-without-a-break" * 8)], "html"),
        "cards": CliRunner()
        .invoke(main, ["hardware", "--isolated", "--output-format", "html", str(SAMPLES / "lora-8b.yaml")])
        .output,
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("name", ["plan", "offload", "many", "long", "cards"])
def test_nothing_is_clipped(browser: Any, pages: dict[str, Path], name: str, width: int):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.goto(pages[name].as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert tab.evaluate(CLIPPED) == []
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_the_light_and_in_the_dark(browser: Any, pages: dict[str, Path], scheme: str):
    tab = browser.new_page(color_scheme=scheme)
    for path in pages.values():
        tab.goto(path.as_uri())
        assert tab.evaluate(FAINT) == []
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") is (scheme == "light")
    tab.close()


def test_a_screen_reader_gets_the_numbers_of_the_pictures(browser: Any, pages: dict[str, Path]):
    tab = browser.new_page()
    tab.goto(pages["plan"].as_uri())
    told = tab.locator("main").aria_snapshot()
    for words in (
        "table ",
        'rowheader "forward and loss (peak)"',
        'heading "Memory over a step"',
        "same training",
        "Phases and parts",
    ):
        assert words in told, words
    assert re.search(r'row "peak [\d.]+ [\d.]+ ', told)
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white_whatever_the_scheme(browser: Any, pages: dict[str, Path], scheme: str):
    tab = browser.new_page(color_scheme=scheme)
    tab.goto(pages["plan"].as_uri())
    tab.emulate_media(media="print", color_scheme=scheme)
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.querySelector('svg')).backgroundColor") == "rgb(243, 245, 248)"
    assert tab.evaluate(FAINT) == []
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_or_moderate(browser: Any, pages: dict[str, Path], width: int, scheme: str):
    axe = axe_core()
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    for name, path in pages.items():
        tab.goto(path.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        tab.evaluate(axe)
        found = tab.evaluate("axe.run().then((result) => result.violations.map((one) => [one.impact, one.id]))")
        assert [one for one in found if one[0] != "minor"] == [], name
    tab.close()


def test_what_is_folded_is_printed(browser: Any, pages: dict[str, Path]):
    tab = browser.new_page()
    tab.goto(pages["plan"].as_uri())
    ledger = tab.locator("table.terms").first
    assert not ledger.is_visible()
    tab.emulate_media(media="print")
    assert ledger.bounding_box()["height"] > 50
    tab.close()


def test_the_browser_runs_and_fetches_nothing_for_a_page(browser: Any, pages: dict[str, Path]):
    tab = browser.new_page()
    asked: list[str] = []
    refused: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: refused.append(message.text))
    tab.goto(pages["plan"].as_uri())
    assert asked == [pages["plan"].as_uri()] and refused == []
    tab.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    )
    assert tab.evaluate("window.ran") is None
    tab.close()
