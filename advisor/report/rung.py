"""The rows of the options table: what each further step would leave on one GPU."""

from typing import TYPE_CHECKING

from advisor.record import record

if TYPE_CHECKING:
    from advisor.engine.finding import Report
    from advisor.memory.ledger import Verdict


@record
class Rung:
    """One row: the step (``as written`` for the first), bytes that one GPU needs after it, verdict, price.

    ``safe`` is False from the first step on that changes what is trained.
    """

    step: str
    bytes: int
    verdict: "Verdict"
    cost: str = ""
    safe: bool = True


def ladder_of(report: "Report") -> tuple[Rung, ...]:
    """The run as written, then each step of the plan on top of those before it; empty without a plan."""
    from advisor.report.wording import steps

    plan = [(finding, finding.fix) for finding in steps(report) if finding.fix]
    if report.estimate is None or not plan:
        return ()
    rungs = [Rung("as written", report.estimate.needed.low, report.estimate.verdict)]
    for finding, fix in plan:
        last = rungs[-1]
        after = last.bytes if fix.after is None else fix.after
        safe = last.safe and fix.safe
        rungs.append(Rung(finding.rule, after, fix.verdict or last.verdict, finding.cost, safe))
    return tuple(rungs)
