"""Reports -> diagnostics, by file, and the verdict as a hint at `base_model`."""

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.engine.answer import Answer
from advisor.engine.finding import OF_HOST, Finding, Report
from advisor.errors import InputError
from advisor.report.as_json import url
from advisor.report.wording import ON, VERDICT_RULES, is_offer, number

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
        found.setdefault(finding.place.file, []).append(_diagnostic(finding, text, report.answer))
    return found


def _diagnostic(finding: Finding, text: str, answer: Answer | None) -> Any:
    """One of them; its code leads to the page of its rule, where that has an address."""
    page = url(finding)
    if finding.rule in VERDICT_RULES and answer is not None and answer.starts:
        lines = _of_answer(finding, answer)
    else:
        lines = [finding.message, *(finding.help if finding.rule in VERDICT_RULES else finding.help[:1])]
    return lsp.Diagnostic(
        range_of(finding.place, text),
        "\n".join(line.replace("`", "") for line in lines if line),
        severity=SEVERITIES[finding.level],
        source=SOURCE,
        code=finding.rule,
        code_description=lsp.CodeDescription(page) if page else None,
    )


def _of_answer(finding: Finding, answer: Answer) -> list[str]:
    """Does it fit, what to do, what batch size one needs, and how to say that one knows better."""
    advice = finding.help
    if any(option.command is not None for option in answer.options):
        advice = advice[-1:] if finding.rule == OF_HOST else (*advice[:1], *advice[1:][-1:])
    return [answer.headline, for_editors(answer), *advice]


def for_editors(answer: Answer) -> str:
    """The action; what a terminal gets by an option is a quick fix here."""
    words = answer.action
    if answer.reason is not None and answer.reason.where == "no-gpus":
        return "Say which GPUs you have: quick fix, or `# advisor: gpus=8x a100-80gb`"
    for option in sorted(answer.options, key=lambda option: -len(option.flags)):
        words = words.replace(f"add {option.flags}", "quick fix") if option.flags else words
    return words


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


def verdict_hint(report: Report, line: int, column: int, needs: int | None = None) -> Any:
    """The verdict, behind a line; without GPUs what one would need, in bytes."""
    found = report.estimate
    words = f"{ON[report.verdict]} {report.hardware}"
    if report.hardware is None:
        words = f"needs {number(needs)} GiB; no GPUs stated" if needs is not None else "no GPUs stated"
    elif found is not None:
        words += f"{found.condition}: {number(found.needed.high)} of {number(found.usable)} GiB"
    return lsp.InlayHint(lsp.Position(line, column), words, padding_left=True, tooltip=report.summary)
