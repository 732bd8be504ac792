"""Says what was found: one module a format, each loaded only when it is asked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from advisor.report.style import Detail, Style
from advisor.util import path_shown

if TYPE_CHECKING:
    from advisor.engine.finding import Report
    from advisor.engine.rule import Rule
    from advisor.errors import InputError
    from advisor.hardware.prices import Price
    from advisor.report.wording import StepRow
    from advisor.run import Run

__all__ = [
    "FORMATS",
    "check_pieces",
    "render_check",
    "render_error",
    "render_estimate",
    "render_rule",
    "render_rules",
    "rule_page_json",
]

FORMATS: Mapping[str, str] = {
    "full": "full",
    "concise": "concise",
    "pre-commit": "pre_commit",
    "json": "as_json",
    "agent": "agent",
    "github": "github",
    "gitlab": "gitlab",
    "sarif": "sarif",
    "markdown": "markdown",
    "html": "html_page",
    "github-review": "github_review",
    "gitlab-review": "gitlab_review",
}
"""Each output format with its module here, which has ``render(reports, style) -> str``.

A module whose text is long also has ``pieces(reports)``, which yields the same text bit by bit.
"""


def render_check(
    reports: "Sequence[Report]",
    format: str,  # noqa: A002 (as on the command line)
    *,
    color: bool = False,
    width: int = 80,
    unicode: bool = True,
    detail: Detail = "normal",
) -> str:
    """The findings of all files in one of ``FORMATS``, without a newline at the end.

    Prose of ``full`` keeps to ``width`` columns; colour touches ``full`` and ``concise`` alone. An unknown
    format is a ``ValueError``.
    """
    return _module_of(format).render(reports, Style(color, width, unicode, detail))


def check_pieces(
    reports: "Sequence[Report]",
    format: str,  # noqa: A002
    *,
    color: bool = False,
    width: int = 80,
    unicode: bool = True,
    detail: Detail = "normal",
) -> Iterator[str]:
    """The same text in pieces: those of the formats that are long are made as they are asked for."""
    pieces = getattr(_module_of(format), "pieces", None)
    if pieces is not None:
        yield from pieces(reports)
    else:
        yield render_check(reports, format, color=color, width=width, unicode=unicode, detail=detail)


def render_estimate(
    report: "Report",
    format: str = "full",  # noqa: A002
    *,
    run: "Run | None" = None,
    rows: "Sequence[StepRow]" = (),
    color: bool = False,
    width: int = 80,
    unicode: bool = True,
    ledger: bool = False,
    tokens: float | None = None,
    price: "Price | None" = None,
) -> str:
    """The memory of one ``run`` and the time of its step: ``json``, ``html``, or the screen, which any other gets.

    ``rows`` are those of the table of steps (see ``wording.step_rows``); ``ledger`` adds every term of every
    phase and of the step, with its arithmetic and source. ``tokens`` of an epoch give hours, ``price`` of a GPU-hour
    the cost.
    """
    if format == "json":
        from advisor.report.as_json import render_estimate as render_json

        return render_json(report)
    from advisor.report.time import Training

    training = Training(run, tokens, price)
    if format == "html":
        from advisor.report.html_page import estimate

        return estimate(report, training)
    from advisor.report.estimate import render

    return render(report, rows, Style(color, width, unicode), ledger=ledger, training=training)


def render_rule(rule: "Rule", *, color: bool = False, width: int = 80) -> str:
    """The page of one rule: what it is, why, cost, whether its edit is safe, examples as diffs, source."""
    from advisor.report.rule_page import page

    return page(rule, Style(color, width))


def render_rules(rules: "Iterable[Rule]", *, color: bool = False, width: int = 80) -> str:
    """The list of rules with their titles, grouped by stage."""
    from advisor.report.rule_page import listing

    return listing(rules, Style(color, width))


def rule_page_json(rule: "Rule") -> dict[str, Any]:
    """The page of one rule as a JSON value."""
    from advisor.report.rule_page import as_json

    return as_json(rule)


def render_error(error: "InputError", *, color: bool = False, width: int = 80) -> str:
    """What could not be used, where, and what to do about it; for standard error."""
    style = Style(color, width)
    level = "note" if error.note else "error"
    lines = style.prose(error.message, f"{level}: ", level, indent=2)
    if error.file:
        file = path_shown(error.file)
        place = f"{file}:{error.line}" if error.line else file
        lines.append(f"{style.paint('  -->', 'frame')} {place}" + (f":{error.column}" if error.column else ""))
    if error.remedy:
        lines += style.prose(error.remedy, "   = help: ", "help")
    return "\n".join(lines)


def _module_of(name: str) -> Any:
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; choose one of {', '.join(FORMATS)}")
    return import_module(f"advisor.report.{FORMATS[name]}")
