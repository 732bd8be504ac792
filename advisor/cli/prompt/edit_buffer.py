"""What the editor gets: the lines that an edit writes, and what comes back of them."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from advisor.documents import Document
from advisor.engine.plan_findings import changed_documents
from advisor.errors import InputError
from advisor.record import record
from advisor.run import Run

OURS = "#:"
MARK = "#: ----"
INTRODUCTION = (
    f"{OURS} These lines would be written. Change them, save and quit; the result is checked before you confirm it.",
    f"{OURS} Lines that begin with {OURS} must stay. Comments that you add are not kept.",
)


@record(eq=False)
class Page:
    """One file of an edit: as it was (None: a new one), as it would be, and which of its lines are new."""

    old: Document | None
    new: Document
    lines: tuple[str, ...]
    blocks: tuple[tuple[int, int], ...]

    def with_blocks(self, written: Sequence[Sequence[str]]) -> str:
        """The whole text, with other lines in the place of the new ones."""
        lines: list[str] = []
        done = 0
        for (start, end), block in zip(self.blocks, written, strict=True):
            lines += [*self.lines[done:start], *block]
            done = end
        return "\n".join([*lines, *self.lines[done:]]) + "\n"


def pages_of(before: Run, after: Run) -> list[Page]:
    """The files that an edit changes."""
    return [_page_of(old, new) for old, new in changed_documents(before, after)]


def _page_of(old: Document | None, new: Document) -> Page:
    """One file; its new lines as ``diff`` finds them."""
    was = old.rebased().text.splitlines() if old is not None else []
    lines = new.rebased().text.splitlines()
    changes = SequenceMatcher(None, was, lines, autojunk=False).get_opcodes()
    return Page(old, new, tuple(lines), tuple((c[3], c[4]) for c in changes if c[0] != "equal"))


def sheet(pages: Sequence[Page]) -> str:
    """The text for the editor."""
    lines = [*INTRODUCTION]
    for page in pages:
        for start, end in page.blocks:
            lines += [f"{MARK} {page.new.file}:{start + 1}", *page.lines[start:end]]
    return "\n".join(lines) + "\n"


def texts_from(written: str, pages: Sequence[Page]) -> list[str]:
    """The whole text of each file. ``InputError`` where the lines can no longer be told apart."""
    blocks: list[list[str]] = []
    for line in written.splitlines():
        if line.startswith(MARK):
            blocks.append([])
        elif blocks and not line.startswith(OURS):
            blocks[-1].append(line)
    if len(blocks) != sum(len(page.blocks) for page in pages):
        raise InputError(f"the lines that begin with `{MARK}` are not all there", remedy="leave them where they are")
    texts: list[str] = []
    for page in pages:
        texts.append(page.with_blocks(blocks[: len(page.blocks)]))
        del blocks[: len(page.blocks)]
    return texts
