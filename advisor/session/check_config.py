"""Document -> everything that is found: the run, the report, and what speaks against a launch."""

from functools import cached_property

from advisor.documents import Document
from advisor.engine.blocking import blockers
from advisor.engine.check import check_run
from advisor.engine.finding import Finding, Report
from advisor.engine.options import Options
from advisor.hardware import Hardware
from advisor.opening import LoadedRun, open_run
from advisor.record import record, replace
from advisor.run import Run
from advisor.session.session import Session


@record(eq=False)
class CheckedRun:
    """One run with all that was found."""

    opened: LoadedRun
    options: Options
    report: Report

    @property
    def run(self) -> Run:
        """The run as it was opened."""
        return self.opened.run

    @cached_property
    def against(self) -> tuple[Finding, ...]:
        """The errors for which a launch is blocked."""
        return blockers(self.report, self.options)


def check_config(
    config: Document, session: Session, *, hardware: Hardware | None = None, speed: bool = True
) -> CheckedRun:
    """Everything that is found of one config.

    ``hardware`` comes before all that options, config and settings say. ``speed``: also what the room allows.
    ``InputError`` where the config cannot be read as a run.
    """
    context = replace(session.context, hardware=hardware) if hardware else session.context
    return check_loaded(open_run(config, context), session, speed=speed)


def check_loaded(opened: LoadedRun, session: Session, *, speed: bool = True) -> CheckedRun:
    """The same of a run that is open."""
    options = replace(session.options_of(opened), speed=speed)
    report = check_run(opened, options)
    if options.answers:
        from advisor.engine.answering import answered

        report = answered(opened, options, report)
    return CheckedRun(opened, options, report)
