"""Where an estimate is worth a trial: it is near the limit, or only approximate."""

from shlex import quote

from advisor.engine.finding import Report


def asks_to_verify(report: Report) -> bool:
    """Whether a few real steps would settle more than the estimate does."""
    approximate = report.basis is not None and report.basis.kind == "approximate"
    return report.estimate is not None and (report.verdict == "tight" or (approximate and report.verdict == "fits"))


def disagreement(file: str) -> str:
    """The one command that settles it."""
    return f"does it disagree? `{command(file)}`"


def command(file: str) -> str:
    """It trains a few steps, and compares."""
    return f"advisor verify {quote(file)}"
