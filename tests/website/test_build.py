"""What the site is made of: every page is reached, every option has a title, links lead to pages that are there."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

import click
import pytest

from advisor.cli.main import main
from advisor.util import toml_library

from . import commands, json_page, plots
from .build import CODE, LINK, READMES, ROOT, SITE, linked, target
from .build import main as main_of_build

PAGES = {file.name for file in (SITE / "docs").glob("*.md")} | READMES.keys() | {"json.md"}
CONFIG = toml_library().loads((SITE / "zensical.toml").read_text(encoding="utf-8"))["project"]
COMMANDS = commands.files()


def entries(part: Any) -> list[str]:
    """The pages and addresses of the navigation."""
    if isinstance(part, str):
        return [part]
    below = part.values() if isinstance(part, dict) else part
    return [each for one in below for each in entries(one)]


def test_the_navigation_names_every_page_once():
    named = [each for each in entries(CONFIG["nav"]) if not each.startswith("https:")]
    assert sorted(named) == sorted({*PAGES, "commands/index.md", "rules/index.md"})


def test_nothing_is_fetched_from_elsewhere():
    assert CONFIG["theme"]["font"] is False
    assert "repo_url" not in CONFIG, "the theme would ask GitHub"


@pytest.mark.parametrize("name", sorted(name for name, one in main.commands.items() if not one.hidden))
def test_every_option_of_a_command_has_a_title_of_its_own(name: str):
    titles = set(re.findall(r"^### `(.*)`$", COMMANDS[f"{name}.md"], re.MULTILINE))
    options = [param for param in main.commands[name].params if isinstance(param, click.Option) and not param.hidden]
    for option in options:
        assert any(option.opts[-1] in re.split(r"[ ,/]+", title) for title in titles), option.opts


def test_a_link_of_the_repository_leads_to_its_page_or_back_to_the_repository():
    assert target("plugins/site/docs/plan.md", "README.md", "index.md") == "plan.md"
    assert target("plugins/web/README.md", "README.md", "index.md") == "web.md"
    assert target("CONTRIBUTING.md#checks", "README.md", "index.md") == "contributing.md#checks"
    assert target("sample_configs", "README.md", "index.md").endswith("/tree/main/sample_configs")
    assert target("https://example.org/a", "README.md", "index.md") == "https://example.org/a"
    assert linked("`[a](b)` [c](LICENSE)", "README.md", "index.md").startswith("`[a](b)` [c](https://")


@pytest.mark.parametrize("name", sorted(file.name for file in (SITE / "docs").glob("*.md")))
def test_the_links_of_a_page_are_whole(name: str):
    text = "".join(CODE.split((SITE / "docs" / name).read_text(encoding="utf-8"))[::2])
    for _, link, _ in LINK.findall(text):
        if link.startswith("https://github.com/") and "/main/" in link:
            assert (ROOT / link.partition("/main/")[2]).exists(), link
        elif not link.startswith(("https:", "#")):
            assert normpath(PurePosixPath(name).parent / link.partition("#")[0]) in PAGES, link


def test_every_object_of_the_json_has_a_section_that_its_fields_lead_to():
    text = json_page.page()
    titles = {title.lower() for title in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    assert {"checkoutput", "answer", "option"} <= titles
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= titles


@pytest.mark.slow
def test_the_pictures_show_every_run_that_counts():
    drawn = plots.files()
    for text in drawn.values():
        assert int(re.findall(r"(\d+) published runs", text)[0]) == text.count("<circle ")


@pytest.mark.slow
def test_it_builds_and_no_link_leads_nowhere(tmp_path: Path):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("the web page")
    assert main_of_build(tmp_path / "site", tmp_path / "page") == 0
    out = tmp_path / "site" / "out"
    assert (out / "try" / "index.html").read_text() == "the web page"
    for name in ("index.html", "plan/index.html", "rules/zero-2/index.html", "commands/check/index.html"):
        assert (out / name).is_file()
    fetched = re.findall(
        r'(?:src|href)="?(https?://[^" >]+)"?[^>]*(?:rel="?(?:stylesheet|preconnect)|></script)',
        (out / "index.html").read_text(),
    )
    assert fetched == []
