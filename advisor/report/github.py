"""GitHub workflow commands: annotations at the lines of a pull request."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from advisor.engine.finding import Finding, Place, Report
from advisor.engine.rule import Level
from advisor.report.concise import line
from advisor.report.fingerprint import repository_path
from advisor.report.style import Style
from advisor.report.wording import SAFETY, change, counted, findings_of, room, steps
from advisor.util import path_shown, printable

COMMANDS: Mapping[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
SHOWN_OF_A_LEVEL = 10
"""GitHub makes annotations of the first ten commands of a level in one step, and drops the rest."""
LONGEST_MESSAGE = 1024


def render(reports: Sequence[Report], _style: Style) -> str:
    """Commands, most severe first; beyond what GitHub shows of a level, plain lines for the log.

    Runs without hardware come first: no rule can be ignored into a green that says nothing of memory.
    """
    lines = _unjudged([report.file for report in reports if report.hardware is None and not is_json(report)])
    seen: Counter[Level] = Counter({"warning": len(lines)})
    for finding in _of_plans_as_one(findings_of(reports)):
        seen[finding.level] += 1
        shown = seen[finding.level] <= SHOWN_OF_A_LEVEL
        lines.append(command(finding) if shown else _inert(line(finding, Style())))
    return "\n".join(lines)


def _of_plans_as_one(found: Iterable[tuple[Report, Finding]]) -> Iterator[Finding]:
    """The findings, the steps of a plan as one: a notice each would push others out of GitHub's ten."""
    for report, finding in found:
        whole = steps(report) if finding.step is not None else room(report) if finding.sequence == "room" else [finding]
        if finding is whole[0]:
            yield _as_one(whole) if len(whole) > 1 else finding


def _as_one(whole: Sequence[Finding]) -> Finding:
    """Where the first step stands; each step in a line."""
    words = "of the plan" if whole[0].step is not None else "with the spare memory"
    safety = SAFETY[all(step.fix.safe for step in whole if step.fix)]
    lines = [f"{counted(len(whole), 'step')} {words}; {safety}:"]
    for count, step in enumerate(whole, 1):
        effect = "; ".join(part for part in (change(step.fix), SAFETY[step.fix.safe]) if part) if step.fix else ""
        lines.append(f"  {count}. {step.rule}: {step.label or step.title or step.message}; {effect}")
    return Finding("plan", "note", "\n".join(lines), whole[0].place)


def is_json(report: Report) -> bool:
    """Whether this is a DeepSpeed JSON alone, which has no memory of its own."""
    return report.file.lower().endswith(".json")


def _unjudged(files: Sequence[str]) -> list[str]:
    """One command for all runs of which nothing says whether they fit."""
    if not files:
        return []
    named = (
        f"title=advisor (no hardware),file={_escaped_property(repository_path(files[0], 'GITHUB_WORKSPACE'))},line=1"
    )
    some = ", ".join(map(path_shown, files[:3])) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    text = f"memory was not checked, since no GPUs are stated for {some}; state `gpus`"
    return [f"::warning {named}::{escaped(text)}"]


def command(finding: Finding) -> str:
    """``::error title=...,file=...,line=...::message``."""
    properties = {"title": f"advisor ({finding.rule})", **location(finding.place)}
    named = ",".join(f"{name}={_escaped_property(str(value))}" for name, value in properties.items())
    return f"::{COMMANDS[finding.level]} {named}::{escaped(Style().clip(message(finding), LONGEST_MESSAGE))}"


def location(place: Place) -> dict[str, str | int]:
    """Columns only if the span is on one line: over several lines GitHub refuses them."""
    file = repository_path(place.file, "GITHUB_WORKSPACE")
    if not place.line:
        return {"file": file, "line": 1}
    if place.end_line not in (0, place.line):
        return {"file": file, "line": place.line, "endLine": place.end_line}
    end = {"endLine": place.line, "endColumn": place.end_column} if place.end_column else {}
    return {"file": file, "line": place.line, "col": max(1, place.column), **end}


def message(finding: Finding) -> str:
    """The message, then a line for each advice, and what the edit does."""
    lines = [finding.message, *(f"  help: {advice}" for advice in finding.help)]
    if finding.fix:
        words = "; ".join(part for part in (change(finding.fix), SAFETY[finding.fix.safe]) if part)
        lines.append(f"  edit: {words}")
    return "\n".join(lines)


def _inert(text: str) -> str:
    """A line of the log that is no command, old form or new (actions/runner, src/Runner.Common/ActionCommand.cs)."""
    return text.replace("::", ": :").replace("##[", "## [")


def escaped(text: str) -> str:
    """A message as the runner wants it (actions/toolkit, packages/core/src/command.ts)."""
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _escaped_property(text: str) -> str:
    """A property: as a message, and without the two separators."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")
