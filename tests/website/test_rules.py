"""The pages of rules: every rule has one, whole and reachable; findings lead there once it is known where."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.engine.registry import STAGES, built_in_rules
from advisor.report import as_json

from . import rules as pages

RULES = {rule.id: rule for stage in STAGES for rule in built_in_rules(stage).values()}
FILES = pages.files()


class Read(HTMLParser):
    """What a reader of the rendered page sees: titles, links, blocks of code, and all text."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        renderer = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
        self.feed(renderer.render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href" and value]
        if tag in {"h1", "h2"}:
            self.titles.append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.tags and self.tags[-1] in {"h1", "h2"} and data.strip():
            self.titles[-1] += data


def words(text: str) -> str:
    """The words of a rule's text as they are read: without the marks of code."""
    return " ".join(text.replace("`", "").split())


def test_the_index_links_every_rule_once_and_nothing_else():
    assert sorted(Read(FILES["index.md"]).links) == sorted(f"{name}.md" for name in RULES)
    assert set(FILES) == {"index.md", *(f"{name}.md" for name in RULES)}


@pytest.mark.parametrize("name", RULES)
def test_a_page_has_why_source_and_examples_as_the_rule_says_them(name: str):
    rule, page = RULES[name], Read(FILES[f"{name}.md"])
    assert page.titles[0] == name
    assert {"Why", "Examples", "Does not fire on", "Source"} <= set(page.titles)
    shown = words(page.text)
    for text in (rule.title, rule.why, rule.source, rule.cost):
        assert words(text) in shown
    assert page.tags.count("pre") >= len(rule.given)
    assert {"em", "strong"} >= {tag for tag in page.tags if tag in {"em", "strong", "img", "table"}}
    assert page.tags.count("em") == page.tags.count("strong") == 1, "a mark in a text became emphasis"
    relative = {link for link in page.links if not re.match("https?://", link)}
    assert relative == {"index.md"}


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A config with a misspelt key, and a rule of an organisation's own about it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text("base_model: x/y\nmicro_batch_sise: 1\n")
    (tmp_path / "advisor.toml").write_text('rules = ["own"]\n')
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "our_data.py").write_text(
        "from advisor import Example, Hit, Rule\n"
        "rule = Rule(id='our-data', stage='lint', title='t', why='w', source='see https://wiki.example/x',\n"
        "            examples=(), finds=lambda run: [Hit('base_model', 'm')])\n"
    )
    assert CliRunner().invoke(main, ["trust"]).exit_code == 0


def urls() -> dict[str, set[str | None]]:
    """The address of each finding by rule: in JSON and in SARIF."""
    json_, sarif = (
        json.loads(CliRunner().invoke(main, ["check", "--output-format", name, "run.yaml"]).output)
        for name in ("json", "sarif")
    )
    found: dict[str, set[Any]] = {}
    for finding in json_["runs"][0]["findings"]:
        found.setdefault(finding["rule"], set()).add(finding["url"])
    for rule in sarif["runs"][0]["tool"]["driver"]["rules"]:
        found.setdefault(rule["id"], set()).add(rule.get("helpUri"))
    return found


def test_findings_carry_their_page_once_it_is_known_where_pages_are(configs: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(as_json, "PAGES", "https://pages.example/rules/{rule}.html")
    found = urls()
    assert found["unknown-key"] == {"https://pages.example/rules/unknown-key.html"}
    assert found["our-data"] == {"https://wiki.example/x"}, "a rule of somebody else's has no page here"


def test_until_then_it_is_the_address_in_the_source(configs: None):
    assert as_json.PAGES is None
    assert urls()["our-data"] == {"https://wiki.example/x"}
    assert urls()["unknown-key"] == {None}
