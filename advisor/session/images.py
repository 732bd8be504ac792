"""``--images``: how many a row has, and how large."""

from advisor.errors import InputError
from advisor.run import Images
from advisor.util import regex

IMAGES = regex(r"(\d{1,4})x(\d{1,5})x(\d{1,5})")


def read_images(text: str) -> Images:
    """``2x1024x768``: two a row, 1024 pixels wide, 768 high; ``0x0x0`` is none. Raises ``InputError``."""
    match = IMAGES.fullmatch(text.strip().lower())
    if match is None or (int(match[1]) and not int(match[2]) * int(match[3])):
        message = f"`--images {text}` is not a number and a size"
        raise InputError(message, remedy="write for example `--images 2x1024x768`")
    count, width, height = map(int, match.groups())
    return Images(count, max(1, width), max(1, height), "--images")
