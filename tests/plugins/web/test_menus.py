"""What the page has before Python runs: menus from the tables, every sample, the answer to the first of them."""

import json
import re

import pytest
from advisor.plugins.web.build import HERE, PAGE
from advisor.plugins.web.menus import FIRST, examples, filled, samples
from PIL import Image

from advisor.about import SITE
from advisor.hardware import gpu_names
from advisor.models.catalogue import entries
from advisor.new import METHODS

from .preview import FILE, SIZE, VERDICT, headline


@pytest.fixture(scope="module")
def page() -> str:
    return filled((HERE / "static" / PAGE).read_text(encoding="utf-8"))


def values(page: str, menu: str) -> list[str]:
    inner = re.findall(rf'<select id="{menu}">(.*?)</select>', page, re.DOTALL)[0]
    return re.findall(r'<option value="([^"]*)"', inner)


def test_the_menus_are_the_tables(page: str):
    assert sorted(values(page, "card")) == sorted(gpu_names())
    assert sorted(values(page, "base")) == sorted(["", *(entry["id"] for entry in entries())])
    assert values(page, "method") == list(METHODS)


def test_each_sample_is_an_example_with_its_own_json(page: str):
    names = {path.stem for path in samples().glob("*.yaml")}
    assert {each["name"] for each in examples()} == names == set(re.findall(r'data-example="([^"]+)"', page))
    assert [each["name"] for each in examples() if each["json"]] == [
        "zero2-8b",
        "zero3-32b-offload",
        "zero3-32b-small-host",
    ]


def test_the_first_verdict_is_in_the_page_with_what_to_do_and_its_cost(page: str):
    quick = page.partition('<div id="quick"')[2].partition('<p class="buttons">')[0]
    assert "Does not fit: needs" in quick and "same training" in quick and "$" in quick and "Apply A" in quick
    assert 'data-way="A"' in page.partition('<section id="options">')[2]
    assert "micro_batch_size: 8" in page.partition("<textarea")[2]


def test_what_is_said_at_once_is_what_the_buttons_do(page: str):
    data = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    assert data["examples"][0]["name"] == FIRST
    assert data["first"]["full"]["ways"]["A"]["files"]["run.yaml"] != data["examples"][0]["config"]


def test_a_preview_has_an_address_of_its_own(page: str):
    assert f'property="og:image" content="{SITE}/try/preview.png"' in page
    assert not re.search("@@[a-z]+@@", page)


def test_the_preview_is_a_screen_with_the_verdict_of_now():
    with Image.open(FILE) as picture:
        assert picture.size == SIZE and picture.info[VERDICT] == headline(), "`make pictures` draws it again"
    assert FILE.stat().st_size < 100_000
