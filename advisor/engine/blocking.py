"""Whether a launch may go on: one decision for ``advisor launch``, ``axolotl advise`` and the axolotl plugin."""

from collections.abc import Mapping

from advisor.engine.check import Options, rules_of
from advisor.engine.finding import Finding, Report
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


def in_one_line(report: Report) -> str:
    """The verdict with its numbers: ``fits: needs 12.3 to 14.0 of 23.1 GiB on each of 2x RTX 4090``.

    Where something is offloaded it says ``fits, with 168 GiB of host memory a node: ...``.
    """
    from advisor.util import GIB

    found = report.estimate
    if found is None:
        reason = "the hardware is unknown" if report.hardware is None else "the model, or a value, is unknown"
        return f"no verdict: {reason}"
    counted = f"{found.needed.low / GIB:.1f} to {found.needed.high / GIB:.1f} of {found.usable / GIB:.1f} GiB"
    where = f"{counted} on each of {report.hardware}"
    if report.verdict == "unknown":
        keys = ", ".join(f"`{each.key}`" for each in found.uncounted)
        return f"no verdict: {keys} is not counted; without it the run needs {where}"
    return f"{report.verdict.replace('-', ' ')}{found.grounds}: needs {where}{time_words(report)}"


def time_words(report: Report) -> str:
    """``, 2.31 s a step``; empty where the time is not known."""
    from advisor.speed import StepTime
    from advisor.util import seconds

    return f", {seconds(report.time.expected)} s a step" if isinstance(report.time, StepTime) else ""
