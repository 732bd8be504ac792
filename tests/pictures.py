"""``make pictures``: the README's picture, a real screen of ``advisor check`` as an SVG without a font of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / ".github" / "pictures" / "check.svg"
COMMAND = ("check", "sample_configs/full-8b-out-of-memory.yaml")
COLUMNS = 80
UNTIL = "--- "
"""The diff is left to the reader's own terminal."""
CELL, LINE, EDGE = 8.4, 19, 18
"""Of a character, a line and the margin, in pixels."""
NO_BREAK = "\xa0"
"""Several spaces of the other kind are drawn as one."""
SGR = re.compile(r"\x1b\[([\d;]*)m")
INK = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "34": "#79c0ff", "36": "#76e3ea"}


def screen() -> list[str]:
    """The lines that the command prints on a terminal with colours."""
    own = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PYTHONUTF8": "1", "CUDA_VISIBLE_DEVICES": ""}
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("ADVISOR_", "NO_COLOR"))}
    words = [sys.executable, "-m", "advisor", *COMMAND]
    done = subprocess.run(words, cwd=ROOT, env=quiet | own, capture_output=True, encoding="utf-8", check=False)
    lines = done.stdout.splitlines()
    end = next(number for number, line in enumerate(lines) if SGR.sub("", line).startswith(UNTIL))
    return [f"\x1b[2m$\x1b[0m advisor {' '.join(COMMAND)}", "", *lines[:end]]


def picture(lines: list[str]) -> str:
    """The lines as text on a dark ground; a title for those who do not see it."""
    while not lines[-1]:
        lines = lines[:-1]
    wide, high = round(COLUMNS * CELL + 2 * EDGE), LINE * len(lines) + 2 * EDGE
    rows = "\n".join(row(line, EDGE + LINE * number + 14) for number, line in enumerate(lines) if line)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">\n'
        f"<title>{escape(' '.join(SGR.sub('', line).strip() for line in lines[2:4]))}</title>\n"
        f'<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>\n'
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" fill="#e6edf3"'
        f">\n{rows}\n</g>\n</svg>\n"
    )


def row(line: str, y: int) -> str:
    """One line: a piece of text for each colour, as wide as its characters, whatever the font is."""
    return "".join(piece(text, codes, column, y) for text, codes, column in pieces(line))


def pieces(line: str) -> Iterator[tuple[str, list[str], int]]:
    """Texts with their codes and their column."""
    column, codes = 0, list[str]()
    for place, part in enumerate(SGR.split(line)):
        if place % 2:
            codes = [] if part in ("", "0") else [*codes, *part.split(";")]
        elif part:
            if part.strip():
                yield part, codes, column
            column += len(part)


def piece(text: str, codes: list[str], column: int, y: int) -> str:
    """One of them."""
    start = column + len(text) - len(text.lstrip())
    shown = text.strip()
    color = next((f' fill="{INK[code]}"' for code in codes if code in INK), "")
    bold = ' font-weight="700"' if "1" in codes else ""
    faint = ' opacity=".6"' if "2" in codes else ""
    place = (
        f'x="{EDGE + start * CELL:.1f}" y="{y}" textLength="{len(shown) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
    )
    return f"<text {place}{color}{bold}{faint}>{escape(shown).replace(' ', NO_BREAK)}</text>"


def main() -> None:
    """Writes the file."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(picture(screen()), encoding="utf-8")


if __name__ == "__main__":
    main()
