"""Reports -> diagnostics, by file, and the verdict as a hint at `base_model`."""

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.engine.finding import Finding, Report
from advisor.errors import InputError
from advisor.report.as_json import url
from advisor.report.wording import ON, VERDICT_RULES, fill, is_offer

from .texts import lsp, range_of, rows_of, units

SEVERITIES: Mapping[str, Any] = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
SOURCE = "advisor"


def shown(report: Report) -> Iterable[Finding]:
    """What is a diagnostic: no steps and no offers, which are actions."""
    return (finding for finding in report.findings if finding.step is None and not is_offer(finding))


def diagnostics(report: Report) -> dict[str, list[Any]]:
    """The diagnostics of each file of a run; those without any are there with an empty list."""
    found: dict[str, list[Any]] = {file: [] for file in report.texts}
    for finding in shown(report):
        text = report.texts.get(finding.place.file, "")
        found.setdefault(finding.place.file, []).append(_diagnostic(finding, text))
    return found


def _diagnostic(finding: Finding, text: str) -> Any:
    """One of them; its code leads to the page of its rule, where that has an address."""
    page = url(finding)
    advice = finding.help if finding.rule in VERDICT_RULES else finding.help[:1]
    return lsp.Diagnostic(
        range_of(finding.place, text),
        "\n".join([finding.message.replace("`", ""), *(words.replace("`", "") for words in advice)]),
        severity=SEVERITIES[finding.level],
        source=SOURCE,
        code=finding.rule,
        code_description=lsp.CodeDescription(page) if page else None,
    )


def broken(error: InputError) -> Any:
    """What cannot be read, at its line."""
    line = max(0, error.line - 1)
    words = f"{error.message}; {error.remedy}" if error.remedy else error.message
    span = lsp.Range(lsp.Position(line, max(0, error.column - 1)), lsp.Position(line, 1000))
    return lsp.Diagnostic(span, words.replace("`", ""), severity=SEVERITIES["error"], source=SOURCE, code="unreadable")


def too_large(text: str) -> Any:
    """Why nothing is said of a text while it is typed."""
    span = lsp.Range(lsp.Position(0, 0), lsp.Position(0, units(rows_of(text)[0])))
    words = "too large to check while typing; it is checked when it is opened or saved"
    return lsp.Diagnostic(span, words, severity=SEVERITIES["note"], source=SOURCE, code="too-large")


def verdict_hint(report: Report, line: int, column: int) -> Any:
    """The verdict, behind a line."""
    found = report.estimate
    words = "no GPUs stated" if report.hardware is None else f"{ON[report.verdict]} {report.hardware}"
    if found is not None:
        words += f"{found.condition}: {fill(found)}"
    return lsp.InlayHint(lsp.Position(line, column), words, padding_left=True, tooltip=report.summary)
