"""Fixes as suggestions on a pull request: lines of the diff, and what they become with one click."""

import hashlib
from collections.abc import Iterator, Sequence

from advisor.documents import Edit
from advisor.engine.finding import Against, Report
from advisor.record import record
from advisor.report.markdown_text import escaped, fence_for
from advisor.report.wording import SAFETY, VERDICTS, counted, number, remarks

MOST_LINES = 20
"""A suggestion of more lines hides what it changes."""


@record
class Suggestion:
    """Lines ``first`` to ``last`` of ``file`` become ``text``; ``anchor`` is one of them that the diff touches."""

    file: str
    first: int
    last: int
    anchor: int
    text: str
    words: str

    @property
    def mark(self) -> str:
        """A comment that readers do not see, by which a push recognises what an earlier one has suggested."""
        identity = "\0".join((self.file, self.words.partition(":")[0], self.text))
        return f"<!-- axolotl-advisor {hashlib.sha256(identity.encode(errors='replace')).hexdigest()[:16]} -->"

    def body(self, language: str) -> str:
        """The comment, in GitHub's or GitLab's Markdown; the fence is longer than any in the text."""
        fence = fence_for(self.text)
        text = self.text + "\n" if self.text else ""
        return f"{self.mark}\n{self.words}\n\n{fence}{language}\n{text}{fence}"


@record
class Lines:
    """Lines of a file and what they become."""

    file: str
    first: int
    last: int
    text: str


def suggestions(reports: Sequence[Report]) -> list[Suggestion]:
    """What can be accepted with a click: edits that change lines of the diff; the others are left to the comment."""
    return [each for report in reports if report.against is not None for each in of_report(report, report.against)]


def of_report(report: Report, against: Against) -> Iterator[Suggestion]:
    """The fixes of one run, then its plan if all of it can be suggested."""
    for finding in remarks(report):
        if finding.fix is not None:
            words = f"**{finding.level}** `{finding.rule}`: {escaped(finding.message)} ({SAFETY[finding.fix.safe]})"
            yield from placed(changed_lines(finding.fix.edits, report), words, against)
    if report.plan is not None and any(finding.step for finding in report.findings):
        found = placed(changed_lines(report.plan.edits, report), _plan_words(report), against)
        parts = len(found)
        for part, each in enumerate(found, 1):
            lead = f"Part {part} of {parts}, which belong together. " if parts > 1 else ""
            yield Suggestion(each.file, each.first, each.last, each.anchor, each.text, lead + each.words)


def _plan_words(report: Report) -> str:
    """What the plan does."""
    plan = report.plan
    assert plan is not None
    steps = [finding for finding in report.findings if finding.step]
    names = ", ".join(f"`{finding.rule}`" for finding in steps)
    return (
        f"**{counted(len(steps), 'step')}**: {names}: {number(plan.before)} -> {number(plan.after)} GiB on each GPU,"
        f" then {VERDICTS[plan.verdict]} ({SAFETY[plan.safe]})"
    )


def placed(found: Sequence[Lines] | None, words: str, against: Against) -> list[Suggestion]:
    """The lines as suggestions, if each of them stands in the diff; else none."""
    said: list[Suggestion] = []
    for lines in found or ():
        span = range(lines.first, lines.last + 1)
        touched = [line for line in span if line in against.touched.get(lines.file, ())]
        if not touched or len(span) > MOST_LINES or not set(span) <= against.shown.get(lines.file, frozenset()):
            return []
        said.append(Suggestion(lines.file, lines.first, lines.last, touched[-1], lines.text, words))
    return said


def changed_lines(edits: Sequence[Edit], report: Report) -> list[Lines] | None:
    """The lines that edits change, those that touch as one; None where a file is new, or its text unknown."""
    if any(edit.create or edit.file not in report.texts for edit in edits):
        return None
    groups: list[list[Edit]] = []
    for edit in sorted(edits, key=lambda edit: (edit.file, edit.start)):
        raw = report.texts[edit.file].encode()
        last = groups[-1][-1] if groups else None
        if last and last.file == edit.file and _first_line(raw, edit.start) <= _first_line(raw, last.end) + 1:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return [joined(group, report.texts[group[0].file].encode()) for group in groups]


def joined(edits: Sequence[Edit], raw: bytes) -> Lines:
    """The whole lines around edits that are near to each other."""
    start, end = edits[0].start, max(edit.end for edit in edits)
    if start >= len(raw) and raw:
        start -= 1  # behind the last line: it is said again, with the new ones
    begin = raw.rfind(b"\n", 0, start) + 1
    stop = raw.find(b"\n", max(end - 1, begin) if end > start and raw[end - 1 : end] == b"\n" else end)
    stop = len(raw) if stop < 0 else stop + 1
    text = raw[begin:stop]
    for edit in sorted(edits, key=lambda edit: -edit.start):
        text = text[: edit.start - begin] + edit.text.encode() + text[edit.end - begin :]
    last = _first_line(raw, max(begin, stop - 1))
    return Lines(edits[0].file, _first_line(raw, begin), last, text.decode(errors="replace").rstrip("\r\n"))


def _first_line(raw: bytes, offset: int) -> int:
    """The line of an offset, from 1."""
    return raw.count(b"\n", 0, offset) + 1
