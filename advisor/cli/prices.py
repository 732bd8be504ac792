"""Prices of GPU-hours, as a user states them: a TOML file of cards and numbers. None ships."""

from advisor.errors import InputError
from advisor.hardware import find_gpu, near_names
from advisor.util import read_start, toml_library

MOST_BYTES = 1 << 20
REMEDY = 'write for example `"a100-80gb" = 1.89`, one line a card'


def read_prices(path: str) -> dict[str, float]:
    """The price of an hour of each card, by the catalogue's id. ``InputError`` with file, line and remedy."""
    try:
        text = read_start(path, MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path, remedy=REMEDY) from error
    library = toml_library()
    try:
        values = library.loads(text)
    except library.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}", path, remedy=REMEDY) from error
    prices: dict[str, float] = {}
    for name, price in values.items():
        gpu = find_gpu(name)
        if gpu is None:
            near = " or ".join(f"`{other}`" for other in near_names(name))
            raise InputError(f"unknown GPU `{name}`", path, line_of(text, name), remedy=near or REMEDY)
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not price >= 0:
            raise InputError(f"`{name}` is `{price}`, not a price", path, line_of(text, name), remedy=REMEDY)
        prices[gpu.id] = float(price)
    return prices


def line_of(text: str, name: str) -> int:
    """The line of a key."""
    lines = (line.strip().strip("\"'") for line in text.splitlines())
    return next((number for number, line in enumerate(lines, 1) if line.startswith(name)), 0)
