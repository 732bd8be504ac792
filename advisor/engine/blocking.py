"""Whether a launch may go on: one decision for ``advisor launch``, ``axolotl advise`` and the axolotl plugin."""

from collections.abc import Mapping

from advisor.engine.finding import Finding, Report
from advisor.engine.options import Options, rules_of
from advisor.engine.rule import Rule

NO_BLOCK = "ADVISOR_NO_BLOCK"
"""Set by ``advisor launch --no-block`` for what it launches, so that a plugin in there speaks and goes on."""


def blockers(report: Report, options: Options) -> tuple[Finding, ...]:
    """The errors that are proven to stop the run after the download, or for lack of memory.

    A finding that a comment or the settings keep quiet is not in the report, and blocks nothing.
    """
    rules: Mapping[str, Rule] = rules_of("lint", options)
    return tuple(
        finding
        for finding in report.findings
        if finding.level == "error" and finding.rule in rules and rules[finding.rule].fatal
    )


def in_one_line(report: Report, steps: float | None = None) -> str:
    """The verdict with its numbers: ``fits 21.2 of 23.1 GiB; about 3 h 10``, where the ``steps`` of the run are known.

    What it takes of the hosts, or supposes of the rows, is said: ``fits 21.2 of 23.1 GiB, with 168 GiB of host memory a
    node; 6.40 s a step``.
    """
    return f"{verdict_words(report)}{time_words(report, steps)}"


def verdict_words(report: Report) -> str:
    """``does not fit: 55.0 of 23.1 GiB``: the high end of what is needed, of what there is."""
    from advisor.util import number

    found = report.estimate
    if found is None:
        reason = "the hardware is unknown" if report.hardware is None else "the model, or a value, is unknown"
        return f"no verdict: {reason}"
    counted = found.filled
    if found.verdict == "unknown":
        keys = ", ".join(f"`{each.key}`" for each in found.uncounted)
        return f"no verdict: {keys} is not counted; without it the run needs {counted} on each of {report.hardware}"
    if found.verdict == "fits":
        return f"fits {counted}{', with little room' if found.has_little_room else ''}{found.grounds}"
    if found.on_gpu == "fits":
        counted = f"{number(found.host_peak)} of {number(found.host_usable or 0)} GiB of host memory a node"
    if found.verdict == "tight":
        return f"near the limit: {counted}, may run out"
    return f"does not fit: {counted}{' in evaluation' if found.peak_phase == 'evaluation' else ''}"


def time_words(report: Report, steps: float | None = None) -> str:
    """``; about 3 h 10`` of so many steps, else ``; 2.31 s a step``; empty where none is known, or it does not fit."""
    from advisor.speed import StepTime
    from advisor.util import seconds

    if not isinstance(report.time, StepTime) or report.verdict == "does-not-fit":
        return ""
    each = report.time.expected
    return f"; {seconds(each)} s a step" if steps is None else f"; about {_hours(steps * each)}"


def _hours(seconds: float) -> str:
    """As precisely as it is known: ``25 min``, ``3 h 10``, ``75 h``."""
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(round(minutes, -1), 60)
    return f"{hours:,} h {rest}" if rest and hours < 24 else f"{round(minutes / 60):,} h"
