"""The page's folder is a static Space of Hugging Face as it is."""

import yaml
from advisor.plugins.web.build import HERE, SPACE

COLORS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
"""https://huggingface.co/docs/hub/spaces-config-reference"""


def test_its_front_matter_names_the_file_that_is_served():
    _, front, text = SPACE.read_text(encoding="utf-8").split("---\n", 2)
    said = yaml.safe_load(front)
    assert (said["sdk"], said["license"]) == ("static", "apache-2.0")
    assert (HERE / "static" / said["app_file"]).is_file()
    assert {said["colorFrom"], said["colorTo"]} <= COLORS
    assert len(said["short_description"]) <= 60
    assert "make web" in text
