"""What users read: the README, and the pages of the site that are written by hand."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
README_FILE = ROOT / "README.md"
PAGES = ROOT / "plugins" / "site" / "docs"
README = README_FILE.read_text(encoding="utf-8")


def page(name: str) -> str:
    """One of the site's pages."""
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


TEXTS = "\n".join([README, *(file.read_text(encoding="utf-8") for file in sorted(PAGES.glob("*.md")))])
"""All of them."""
