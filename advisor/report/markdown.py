"""A comment for a pull request: one sentence, a table of the configs that changed, and the rest folded."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import join, split

from advisor.about import VERSION
from advisor.engine.finding import LEVELS, Report
from advisor.report.chosen import Chosen
from advisor.report.comment_details import details, findings
from advisor.report.comment_row import headline, path_of, table
from advisor.report.disagreement import asks_to_verify, command
from advisor.report.findings_text import spoken
from advisor.report.markdown_text import code, escaped, folded
from advisor.report.style import Style
from advisor.report.wording import counted, is_offer, known_words
from advisor.util import regex

COMMIT = regex(r"[0-9a-f]{40}|[0-9a-f]{64}")

MOST_FILES = 3
"""That a command names; of more it says ``FILE``."""
MOST_DETAILED = 20
"""Configs with a fold of their own: a comment has 65,536 characters."""


def render(reports: Sequence[Report], _style: Style) -> str:
    """The whole comment, in GitHub's Markdown, which GitLab reads too."""
    rows = Chosen(reports, is_row)
    blocks = [
        f"### {headline(rows) if rows else _nothing(reports)}",
        *([table(rows)] if rows else []),
        *_commands(rows),
        *_disagreement(rows),
    ]
    blocks += [details(report) for report in rows[:MOST_DETAILED] if not is_json(report)]
    return "\n\n".join([*blocks, *_findings(reports), *_not_shown(reports, rows), _foot(rows)])


def is_json(report: Report) -> bool:
    """Whether this is a DeepSpeed JSON that no YAML names: it has no memory of its own."""
    return report.estimate is None and report.file.lower().endswith(".json")


def is_row(report: Report) -> bool:
    """What the change has changed; a JSON alone only with what stops a run."""
    loud = any(finding.level != "note" for finding in report.findings)
    if is_json(report):
        return any(finding.level == "error" for finding in report.findings)
    return report.against is None or report.against.changed or loud


def _nothing(reports: Sequence[Report]) -> str:
    """The sentence where there is no row."""
    return "No config has changed" if any(report.against for report in reports) else "No config was found"


def _commands(rows: Sequence[Report]) -> Iterator[str]:
    """``To write the edits: `advisor check --fix a.yaml`.``, a line for each kind of edits."""
    files: dict[tuple[str, ...], list[str]] = {}
    unsafe: set[tuple[str, ...]] = set()
    for report in rows:
        chosen = report.answer.recommended if report.answer else None
        if chosen is not None and chosen.command is not None and chosen.letter in {"A", "B"}:
            *words, _ = split(chosen.command)
            files.setdefault(tuple(words), []).append(path_of(report.file))
            unsafe |= {tuple(words)} if chosen.training == "changes" else set()
    for words, named in files.items():
        shown = [f"./{name}" if name.startswith("-") else name for name in named]
        lead = "To write the edits that change what is trained" if words in unsafe else "To write the edits"
        yield f"{lead}: {code(join([*words, *(shown if len(shown) <= MOST_FILES else ['FILE'])]))}"


def _disagreement(rows: Sequence[Report]) -> Iterator[str]:
    """``Does it disagree? `advisor verify a.yaml`.``, where some estimate is worth a trial."""
    asked = [report for report in rows if asks_to_verify(report)]
    if asked:
        yield f"Does it disagree? {code(command(path_of(asked[0].file) if len(asked) == 1 else 'FILE'))}"


def _findings(reports: Sequence[Report]) -> Iterator[str]:
    """What was found besides the verdicts, folded under its count; of what is no row, what speaks against it."""
    found: Counter[str] = Counter()
    said: list[str] = []
    for report in Chosen(reports, lambda report: is_row(report) or is_json(report)):
        found.update(finding.level for finding in spoken(report) if not is_offer(finding))
        said += [text] if (text := findings(report)) else []
    if said:
        levels = [counted(found[level], level) for level in LEVELS if found[level]]
        yield folded(", ".join(levels), "\n".join(said))


def _not_shown(reports: Sequence[Report], rows: Sequence[Report]) -> Iterator[str]:
    """What is left out, counted."""
    left = Chosen(reports, lambda report: not is_row(report))
    jsons = sum(map(is_json, left))
    kinds = [(len(left) - jsons, "YAML"), (jsons, "JSON")]
    counts = " and ".join(counted(count, kind) for count, kind in kinds if count)
    same = all(report.against is not None and not report.against.changed for report in left)
    why = "that this pull request does not change" if same else "of which there is nothing to say"
    said = [f"Not shown: {counts} {why}."] if left else []
    said += [f"{code(path_of(report.file))}: {escaped(words)}." for report in rows if (words := known_words(report))]
    if len(rows) > MOST_DETAILED:
        said.append(f"Not shown: the steps of {len(rows) - MOST_DETAILED} more configs.")
    if said:
        yield folded("not shown", "\n".join(f"- {line}" for line in said))


def _foot(rows: Sequence[Report]) -> str:
    """What the numbers are, and what is compared with what."""
    against = next((report.against for report in rows if report.against), None)
    base = f", against {code(_short(against.revision), html=True)}" if against else ""
    head = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA") or ""
    at = f", at {code(_short(head), html=True)}" if head else ""
    return f"<sub>GiB: the most that one GPU needs, of what it has. advisor {VERSION}{base}{at}</sub>"


def _short(revision: str) -> str:
    """A commit as people write it; a name as it is."""
    return revision[:7] if COMMIT.fullmatch(revision) else revision
