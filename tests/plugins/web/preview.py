"""``make pictures``: the preview of links to the page, a real screen of it in Chromium, with its verdict as a text in it."""

import shutil
import tempfile
from io import BytesIO
from math import ceil
from pathlib import Path

from advisor.plugins.web.build import HERE, PAGE, STYLE
from advisor.plugins.web.menus import filled, first_answers
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ...browser import launched

FILE = HERE / "static" / "preview.png"
SIZE = (1200, 630)
SCALE = 1200 / 1024
VERDICT = "verdict"


def headline() -> str:
    """What the page says first."""
    return first_answers()["quick"]["picture"]["headline"]


def screen() -> bytes:
    """The page as it is before any script runs."""
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        for path in (STYLE, *(HERE / "static").glob("*.css")):
            shutil.copyfile(path, Path(folder, "report.css" if path == STYLE else path.name))
        Path(folder, PAGE).write_text(filled((HERE / "static" / PAGE).read_text(encoding="utf-8")), encoding="utf-8")
        wide, high = (ceil(side / SCALE) for side in SIZE)
        tab = browser.new_page(
            viewport={"width": wide, "height": high}, device_scale_factor=SCALE, java_script_enabled=False
        )
        tab.goto(Path(folder, PAGE).as_uri())
        return tab.screenshot()


def main() -> None:
    """Writes it, in few colours."""
    picture = Image.open(BytesIO(screen())).convert("RGB").crop((0, 0, *SIZE)).quantize(256, kmeans=2)
    said = PngInfo()
    said.add_text(VERDICT, headline())
    picture.save(FILE, optimize=True, pnginfo=said)


if __name__ == "__main__":
    main()
