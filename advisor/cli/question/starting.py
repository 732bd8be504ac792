"""A run that may start: its verdict in a line, and what is said next to it."""

from advisor.engine.blocking import in_one_line
from advisor.engine.finding import Report
from advisor.engine.model_hints import likeliest_hint, unknown_model, unknown_model_hints
from advisor.record import replace
from advisor.report.time import steps_of
from advisor.session import CheckedRun

UNKNOWN = "unknown-model"
NO_GPUS = "no verdict: no GPUs were found; state them in the YAML: `# advisor: gpus=8x a100-80gb`"


def verdict_lines(found: CheckedRun, *, with_options: bool) -> list[str]:
    """The verdict; of an unknown model also how to make it known, ``with_options`` by those of a command, too."""
    report, run = found.report, found.run
    if report.estimate is None and run.model is None and run.base_model:
        hint = unknown_model_hints(report) if with_options else likeliest_hint(report)
        return [f"no verdict: {unknown_model(run)}", *([hint] if hint else [])]
    return [in_one_line(report, steps_of(run, None)) if report.hardware is not None else NO_GPUS]


def rest_against(found: CheckedRun) -> Report:
    """The errors and warnings that the lines of the verdict do not say."""
    shown = found.report.without_notes()
    return replace(shown, findings=tuple(each for each in shown.findings if each.rule != UNKNOWN))
