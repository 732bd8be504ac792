"""The options of the answer as actions: each as a whole, and each step of the one to take."""

from collections.abc import Iterator
from typing import Any

from advisor.engine.answer import Option
from advisor.engine.finding import PLANNED, Report
from advisor.memory import Estimate
from advisor.report.wording import SAFETY, VERDICTS, counted, number

from .planning import Alone, Planned
from .texts import lsp, new_files, workspace_edit

CREATED = "advisor.created"
"""The command with which an editor tells that it has made files: they count as there before they are saved."""


def of_answer(planned: Planned, quick: Any) -> Iterator[Any]:
    """What can be done about the run."""
    answer, report = planned.answer, planned.report
    for option in answer.options if answer is not None else ():
        if option.command is not None and option.edits:
            preferred = option.recommended and option.letter == "A"
            yield _action(_title(option, report), option.edits, report, quick, preferred=preferred)
    yield from (_action(_alone_title(step, report), step.edits, report, quick) for step in planned.alone)


def _action(title: str, edits: Any, report: Report, quick: Any, *, preferred: bool = False) -> Any:
    """Edits as an action; where it makes files, the editor tells so once they are made."""
    made = new_files(edits)
    told = lsp.Command("advisor: files were made", CREATED, arguments=[made]) if made else None
    edit = workspace_edit(edits, report.texts)
    return lsp.CodeAction(f"advisor: {title}", kind=quick, edit=edit, command=told, is_preferred=preferred or None)


def _title(option: Option, report: Report) -> str:
    """``Make it fit: same training, 2 edits (44.8 -> 19.8 GiB)``."""
    edits = counted(option.changes, "edit")
    changes = f", {SAFETY[False]}" if option.training == "changes" and option.title != "changes training" else ""
    if option.letter == "F":
        answer = report.answer
        before, after = answer.tokens_per_second if answer else None, option.tokens_per_second
        speed = f" ({before:,.0f} -> {after:,.0f} tokens/s)" if before and after else ""
        return f"Use the free memory: {option.title}{changes}, {edits}{speed}"
    verb = "Make it fit" if report.verdict in PLANNED else "Make it start"
    return f"{verb}: {option.title}{changes}, {edits}{_figures(option.end, report)}"


def _alone_title(step: Alone, report: Report) -> str:
    """``Step 1 alone: micro batch 8 -> 4, accumulation 1 -> 2 (44.8 -> 30.1 GiB)``."""
    changes = "" if step.safe else f", {SAFETY[False]}"
    return f"Step {step.number} alone: {step.title}{changes}{_figures(step.end, report)}"


def _figures(end: Estimate | None, report: Report) -> str:
    """What one GPU needs now and then, the high end, and the verdict where it then still does not fit."""
    now = report.estimate
    if end is None or now is None:
        return ""
    still = "" if end.verdict == "fits" else f": {VERDICTS[end.verdict]}"
    return f" ({number(now.needed.high)} -> {number(end.needed.high)} GiB{still})"
