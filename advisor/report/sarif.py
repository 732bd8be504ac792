"""SARIF 2.1.0, the part of it that GitHub code scanning reads (docs.oasis-open.org/sarif/sarif/v2.1.0)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from advisor.finding import Finding, Place, Report
from advisor.memory.ledger import Estimate
from advisor.report.as_json import fix as json_fix
from advisor.report.as_json import memory as json_memory
from advisor.report.as_json import url
from advisor.report.paths import repository_path
from advisor.report.style import Style

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LONGEST_TEXT = 1024
"""GitHub cuts descriptions here (docs.github.com, "SARIF support for code scanning")."""
PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(reports: Sequence[Report], _style: Style) -> str:
    """One log with one run: the rules that spoke, their results, the estimates as properties of the run."""
    findings = [finding for report in reports for finding in report.findings]
    first_of = {finding.rule: finding for finding in reversed(findings)}
    rules = [first_of[name] for name in sorted(first_of)]
    run = {
        "tool": {"driver": driver(rules)},
        "columnKind": "unicodeCodePoints",
        "results": [result(finding, sorted(first_of)) for finding in findings],
        "properties": {"estimates": [estimate_properties(report) for report in reports]},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def driver(rules: Iterable[Finding]) -> dict[str, Any]:
    """The tool and its rules, each described by its first finding."""
    return {
        "name": "advisor",
        "semanticVersion": version(),
        "informationUri": "https://pypi.org/project/axolotl-advisor/",
        "rules": [descriptor(finding) for finding in rules],
    }


def version() -> str:
    """The installed version; ``0.0.0`` in a checkout that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("axolotl-advisor")
    except metadata.PackageNotFoundError:
        return "0.0.0"


def descriptor(finding: Finding) -> dict[str, Any]:
    """A reportingDescriptor (3.49): title, reason, and the page as help."""
    title = (finding.title or finding.rule.replace("-", " "))[:LONGEST_TEXT]
    why = (finding.why or title)[:LONGEST_TEXT]
    address = url(finding.source)
    paragraphs = [
        why,
        f"Cost: {finding.cost}" if finding.cost else "",
        f"Source: {finding.source}" if finding.source else "",
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


def result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    """A result (3.27); the edit goes into its properties, since SARIF's fixes know no new files."""
    said = " ".join([finding.message, *finding.help])
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": finding.level,
        "message": {"text": said},
        "locations": [{"physicalLocation": location(finding.place)}],
        **({"properties": {"fix": json_fix(finding.fix)}} if finding.fix else {}),
    }


def location(place: Place) -> dict[str, Any]:
    """A physicalLocation (3.29): 1-based, the end column exclusive."""
    region = {"startLine": max(1, place.line)}
    if place.line:
        region["startColumn"] = max(1, place.column)
    if place.line and place.end_column:
        region |= {"endLine": place.end_line or place.line, "endColumn": place.end_column}
    uri = quote(repository_path(place.file, "GITHUB_WORKSPACE"))
    return {"artifactLocation": {"uri": uri}, "region": region}


def estimate_properties(report: Report) -> dict[str, Any]:
    """Verdict and memory of one file, without the terms."""
    return {
        "file": repository_path(report.file, "GITHUB_WORKSPACE"),
        "hardware": report.hardware,
        "verdict": report.verdict,
        "memory": summary(report.estimate) if report.estimate else None,
    }


def summary(estimate: Estimate) -> dict[str, Any]:
    """The memory of the JSON format, less its phases."""
    return {name: value for name, value in json_memory(estimate).items() if name != "phases"}
