"""SARIF 2.1.0, the part of it that GitHub code scanning reads (docs.oasis-open.org/sarif/sarif/v2.1.0)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from advisor.about import REPOSITORY, VERSION
from advisor.engine.finding import Against, Finding, Place, Report
from advisor.memory.ledger import Estimate
from advisor.report.as_json import fix as json_fix
from advisor.report.as_json import memory as json_memory
from advisor.report.as_json import streamed, url
from advisor.report.fingerprint import findings_in, identified, repository_path, uri
from advisor.report.sarif_fixes import fixes
from advisor.report.style import Style
from advisor.util import regex

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "GITHUB_WORKSPACE"
FINGERPRINT = "advisorFinding/v1"
"""A name of our own: GitHub's `primaryLocationLineHash` is computed by its upload action, which wants no other's."""
LONGEST_TEXT = 1024
"""GitHub cuts descriptions here (docs.github.com, "SARIF support for code scanning")."""
PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(reports: Sequence[Report], _style: Style) -> str:
    """One log with one run: the rules that spoke, their results, the estimates as properties of the run."""
    return "".join(pieces(reports))


def pieces(reports: Sequence[Report]) -> Iterator[str]:
    """The same, a result at a time."""
    first_of: dict[str, Finding] = {}
    for report in reports:
        for finding in findings_in(report):
            first_of.setdefault(finding.rule, finding)
    numbers = {name: number for number, name in enumerate(sorted(first_of))}
    run = {
        "tool": {"driver": driver(first_of[name] for name in numbers)},
        "columnKind": "unicodeCodePoints",
        "results": ["<results>"],
        "properties": {"estimates": ["<estimates>"]},
    }
    results = (result(*found, numbers) for found in identified(reports, ROOT))
    lists = {"<results>": results, "<estimates>": map(_estimate_properties, reports)}
    return streamed({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, lists)


def driver(rules: Iterable[Finding]) -> dict[str, Any]:
    """The tool and its rules, each described by its first finding."""
    return {
        "name": "advisor",
        "version": VERSION,
        "semanticVersion": VERSION,
        "informationUri": REPOSITORY,
        "rules": [descriptor(finding) for finding in rules],
    }


def descriptor(finding: Finding) -> dict[str, Any]:
    """A reportingDescriptor (3.49): title, reason, and the page as help."""
    title = flat(finding.title or finding.rule.replace("-", " "))[:LONGEST_TEXT]
    why = flat(finding.why or title)[:LONGEST_TEXT]
    address = url(finding)
    paragraphs = [
        why,
        f"Cost: {flat(finding.cost)}" if finding.cost else "",
        f"Source: {flat(finding.source)}" if finding.source else "",
    ]
    page = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
    return {
        "id": finding.rule,
        "name": "".join(word.capitalize() for word in finding.rule.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {"text": page, "markdown": f"**{title}**\n\n{page}"},
        **({"helpUri": address} if address else {}),
        "defaultConfiguration": {"level": finding.level},
        "properties": {"tags": ["memory" if finding.fix and finding.fix.after else "configuration"]}
        | {"problem.severity": PROBLEM_SEVERITY[finding.level]},
    }


LINK = regex(r"\[(?=[^\[\]]*\]\()")
"""What opens an embedded link (3.11.6)."""


def flat(text: str) -> str:
    """A rule's text on one line: as Markdown, its indentation would make it code."""
    return " ".join(text.split())


def result(report: Report, finding: Finding, fingerprint: str, numbers: Mapping[str, int]) -> dict[str, Any]:
    """A result (3.27); the edit is among its properties too, since SARIF's fixes know no new files and no plan."""
    edits = fixes(finding, report.texts, ROOT)
    return {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.level,
        "message": {"text": LINK.sub(r"\\[", "\n".join([finding.message, *finding.help]))},
        "locations": [{"physicalLocation": location(finding.place)}],
        "partialFingerprints": {FINGERPRINT: fingerprint},
        **({"baselineState": _baseline(report.against, finding)} if report.against else {}),
        **({"fixes": edits} if edits else {}),
        **({"properties": {"fix": json_fix(finding.fix)}} if finding.fix else {}),
    }


def _baseline(against: Against, finding: Finding) -> str:
    """A result's baselineState (3.27.24)."""
    return "unchanged" if any(finding is each for each in against.known) else "new"


def location(place: Place) -> dict[str, Any]:
    """A physicalLocation (3.29): 1-based, the end column exclusive."""
    region = {"startLine": max(1, place.line)}
    if place.line:
        region["startColumn"] = max(1, place.column)
    if place.line and place.end_column:
        region |= {"endLine": place.end_line or place.line, "endColumn": place.end_column}
    return {"artifactLocation": {"uri": uri(place.file, ROOT)}, "region": region}


def _estimate_properties(report: Report) -> dict[str, Any]:
    """Verdict and memory of one file, without the terms."""
    return {
        "file": repository_path(report.file, ROOT),
        "hardware": report.hardware,
        "verdict": report.verdict,
        "memory": summary(report.estimate) if report.estimate else None,
    }


def summary(estimate: Estimate) -> dict[str, Any]:
    """The memory of the JSON format, less its phases."""
    return {name: value for name, value in json_memory(estimate).items() if name != "phases"}
