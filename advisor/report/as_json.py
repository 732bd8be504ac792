"""JSON for programs, version 1, as ``schema.json`` describes it. Fields may be added within a version."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.about import SITE, VERSION
from advisor.engine.finding import Against, Finding, Fix, Place, Report, WholePlan
from advisor.engine.registry import is_built_in
from advisor.memory.basis import Basis
from advisor.memory.ledger import Estimate, Phase, Range
from advisor.memory.shorter_rows import ShorterRows
from advisor.report.answer_json import answer, edit
from advisor.report.style import Style
from advisor.report.wording import APPLICABILITY
from advisor.speed import StepTime
from advisor.util import STEERING

FIRST: Mapping[str, object] = {"version": 1, "advisor": VERSION}
"""What every output says first: the version of the format, and that of the advisor."""
PAGES: str | None = None if "//OWNER." in SITE else f"{SITE}/rules/{{rule}}/"
"""Where the pages of rules are published: an address with ``{rule}`` in it. None: nowhere yet."""


def render(reports: Sequence[Report], _style: Style) -> str:
    """What ``check`` found."""
    return "".join(pieces(reports))


def pieces(reports: Iterable[Report]) -> Iterator[str]:
    """The same, a run at a time."""
    return streamed({**FIRST, "runs": ["<runs>"]}, {"<runs>": map(run, reports)})


def render_estimate(report: Report) -> str:
    """The estimate of one run; ``memory`` is null where the model or the hardware is unknown."""
    return dumped({**FIRST, **header(report)})


def header(report: Report) -> dict[str, Any]:
    """What both outputs say first of a run."""
    return {
        "file": report.file,
        "hardware": report.hardware,
        "verdict": report.verdict,
        "memory": memory(report.estimate, report.basis) if report.estimate else None,
        "time": time(report.time) if isinstance(report.time, StepTime) else None,
        "row_length": second(report.second) if report.second else None,
    }


def run(report: Report) -> dict[str, Any]:
    """One file with its findings, in the order of the report."""
    return {
        **header(report),
        "findings": [finding(each) for each in report.findings],
        "skipped": [{"rule": each.rule, "reason": each.reason} for each in report.skipped],
        "answer": answer(report.answer) if report.answer else None,
        "plan": plan(report.plan) if report.plan else None,
        "flowchart": [{"rung": each.name, "word": each.word, "detail": each.detail} for each in report.rungs],
        "against": against(report.against) if report.against else None,
    }


def against(value: Against) -> dict[str, Any]:
    """The other revision, null where the config was not there, and what does not count because it was found there."""
    return {
        "revision": value.revision,
        "run": header(value.report) if value.report else None,
        "known": [finding(each) for each in value.known],
    }


def plan(value: WholePlan) -> dict[str, Any]:
    """The whole plan, with edits against the files as they are."""
    return {
        "safe": value.safe,
        "memory": {"before": value.before, "after": value.after},
        "time": _spent(value.seconds),
        "edits": [edit(each) for each in value.edits],
    }


def _spent(seconds: tuple[float, float] | None) -> dict[str, float] | None:
    """Seconds of a step before and after."""
    return None if seconds is None else {"before": seconds[0], "after": seconds[1]}


def memory(estimate: Estimate, basis: Basis | None = None) -> dict[str, Any]:
    """The estimate in bytes, and how well it is founded."""
    founded = asdict(basis) if basis is not None else None
    return {
        "unit": "bytes",
        "usable": estimate.usable,
        "outside_torch": estimate.outside_torch,
        "allocated_peak": estimate.allocated_peak,
        "needed": range_(estimate.needed),
        "reserved_peak": range_(estimate.reserved_peak),
        "host_peak": estimate.host_peak,
        "host_needed": range_(estimate.host_needed),
        "host_usable": estimate.host_usable,
        "peak_phase": estimate.peak_phase,
        "parts": estimate.parts,
        "rows": asdict(estimate.rows),
        "images": estimate.images and asdict(estimate.images),
        "phases": [phase(each) for each in estimate.phases],
        "basis": founded,
        "uncounted": [{"key": each.key, "what": each.what, "memory": each.memory} for each in estimate.uncounted],
    }


def second(found: ShorterRows) -> dict[str, Any]:
    """The estimate for rows of another length, which the verdict does not rest on; null where rows have one length."""
    value = found.estimate
    known = value and {
        "verdict": value.verdict,
        "allocated_peak": value.allocated_peak,
        "needed": range_(value.needed),
        "reserved_peak": range_(value.reserved_peak),
    }
    return {"tokens": found.length, "memory": known, "reason": found.reason}


def time(found: StepTime) -> dict[str, Any]:
    """The time of a step in seconds."""
    tokens = found.tokens
    return {
        "unit": "seconds",
        "step": {"low": found.low, "expected": found.expected, "high": found.high},
        "tokens_per_second_per_gpu": {
            "low": tokens / found.high,
            "expected": tokens / found.expected,
            "high": tokens / found.low,
        },
        "confidence": found.confidence,
        "terms": [
            {"name": term.name, "seconds": term.seconds, "formula": term.formula, "source": term.source}
            for term in found.terms
        ],
    }


def range_(value: Range) -> dict[str, int]:
    """``{"low", "high"}``."""
    return {"low": value.low, "high": value.high}


def phase(value: Phase) -> dict[str, Any]:
    """One phase with its terms."""
    terms = [
        {"name": term.name, "bytes": term.bytes, "formula": term.formula, "source": term.source} for term in value.terms
    ]
    return {"name": value.name, "bytes": value.bytes, "terms": terms}


def finding(value: Finding) -> dict[str, Any]:
    """One finding; ``url`` is its rule's page, or the address in its source, null if it has none."""
    return {
        "rule": value.rule,
        "level": value.level,
        "message": value.message,
        "url": url(value),
        "location": location(value.place),
        "fix": fix(value.fix) if value.fix else None,
        "sequence": value.sequence,
    }


def url(value: Finding) -> str | None:
    """The page of a rule of the advisor's own, once ``PAGES`` says where; else the first web address in the source."""
    if PAGES and is_built_in(value.rule):
        return PAGES.format(rule=value.rule)
    found = re.search(r"https?://[^\s,;)>]+", value.source)
    return found.group() if found else None


def location(place: Place) -> dict[str, Any]:
    """1-based, the end exclusive; a finding about the whole file stands at its start."""
    line, column = max(1, place.line), max(1, place.column)
    return {
        "file": place.file,
        "line": line,
        "column": column,
        "endLine": max(line, place.end_line),
        "endColumn": place.end_column if place.line and place.end_column else column,
    }


def fix(value: Fix) -> dict[str, Any]:
    """Edits as byte ranges of the files as the previous step left them."""
    known = value.before is not None and value.after is not None
    return {
        "applicability": APPLICABILITY[value.safe],
        "memory": {"before": value.before, "after": value.after} if known else None,
        "time": _spent(value.seconds),
        "edits": [edit(each) for each in value.edits],
    }


ESCAPED = {code: f"\\u{code:04x}" for code in STEERING if code > 0x1F}
"""JSON's own escapes leave these as they are. They stand inside strings alone."""


def dumped(value: object) -> str:
    """Indented, in UTF-8; what could steer a terminal is escaped, and so are the bytes of names that are not UTF-8."""
    return json.dumps(value, indent=2, ensure_ascii=False).translate(ESCAPED)


def streamed(frame: object, lists: Mapping[str, Iterable[object]]) -> Iterator[str]:
    """The text of ``frame``, in whose lists a name stands for the items of that name, in the order of ``lists``."""
    rest = dumped(frame)
    for name, items in lists.items():
        lead, rest = rest.split(f'"{name}"', 1)
        margin = lead[lead.rindex("\n") :]
        empty = True
        for item in items:
            yield (lead if empty else f",{margin}") + dumped(item).replace("\n", margin)
            empty = False
        if empty:
            yield lead.rstrip()
            rest = rest.lstrip()
    yield rest
