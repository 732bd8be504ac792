"""The README's picture is the screen of today."""

import re
import xml.etree.ElementTree as ET

from .pictures import FILE, SGR, picture, screen
from .texts import README


def test_the_picture_is_what_the_command_prints():
    assert FILE.read_text(encoding="utf-8") == picture(screen()), "run `make pictures` and look at it"


def test_it_holds_every_character_of_the_screen_and_fetches_nothing():
    root = ET.fromstring(FILE.read_text(encoding="utf-8"))
    shown = "".join("".join(each.itertext()) for each in root.iter() if each.tag.endswith("text"))
    wanted = "".join(SGR.sub("", line) for line in screen())
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", wanted)
    assert "http" not in FILE.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")


def test_the_readme_shows_it_in_at_most_1200_words():
    assert "(.github/pictures/check.svg)" in README
    assert len(README.split()) <= 1200
