"""Quick fixes: this finding, all safe ones, the whole plan as one edit, and comments that ignore a rule."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.documents import Edit
from advisor.engine.finding import Finding, Report
from advisor.report.wording import SAFETY, VERDICT_RULES, VERDICTS, counted, number, room, room_words, steps

from .checking import Checked, all_safe
from .diagnostics import shown
from .hovering import MODEL
from .texts import lsp, range_of, units, uri_of, workspace_edit

FIX_ALL = "source.fixAll.advisor"
QUICK = lsp.CodeActionKind.QuickFix
IGNORED = re.compile(r"#\s*advisor:\s*ignore\[([^\]]*)\]")


def actions(checked: Checked, planned: Report | None, file: str, at: Any, wanted: Sequence[Any]) -> Iterator[Any]:
    """What can be done at a range of one file of a run; ``planned`` is the report with its plan, once there is one."""
    here = [each for each in shown(checked.report) if each.place.file == file and meets(each, checked, at)]
    kinds = [kind.value if hasattr(kind, "value") else kind for kind in wanted]
    if not kinds or any("quickfix".startswith(kind) for kind in kinds):
        for finding in here:
            yield from _of_finding(finding, checked)
        if planned is not None and any(each.rule in VERDICT_RULES for each in here):
            yield from _of_plan(planned, checked)
        if planned is not None and is_at_model(checked, file, at):
            yield from _of_room(planned, checked)
        for finding in here:
            yield _ignoring(finding, checked)
    if not kinds or any(FIX_ALL.startswith(kind) for kind in kinds):
        yield from everything(checked)


def meets(finding: Finding, checked: Checked, at: Any) -> bool:
    """Whether a finding stands on the lines of a range."""
    span = range_of(finding.place, checked.report.texts.get(finding.place.file, ""))
    return span.start.line <= at.end.line and at.start.line <= span.end.line


def _of_finding(finding: Finding, checked: Checked) -> Iterator[Any]:
    """The fix of one finding, preferred where it changes nothing of the training."""
    if finding.fix is None:
        return
    title = f"Fix {finding.rule}" + ("" if finding.fix.safe else f" ({SAFETY[False]})")
    edit = workspace_edit(finding.fix.edits, dict(checked.report.texts))
    yield lsp.CodeAction(f"advisor: {title}", kind=QUICK, edit=edit, is_preferred=finding.fix.safe)


def _of_plan(planned: Report, checked: Checked) -> Iterator[Any]:
    """All steps of the plan as one edit."""
    plan = planned.plan
    if plan is None:
        return
    count = counted(len(steps(planned)), "step")
    words = "" if plan.safe else f", {SAFETY[False]}"
    end = f"{number(plan.before)} -> {number(plan.after)} GiB: {VERDICTS[plan.verdict]}"
    edit = workspace_edit(plan.edits, dict(checked.report.texts))
    verb = "Make it fit" if plan.verdict in {"fits", "tight"} else "Get nearer"
    yield lsp.CodeAction(f"advisor: {verb} ({count}{words}; {end})", kind=QUICK, edit=edit)


def _of_room(planned: Report, checked: Checked) -> Iterator[Any]:
    """All steps with which the room that is left is used, as one edit, where they change nothing of the training."""
    whole = planned.room
    if whole is None or not whole.safe:
        return
    edit = workspace_edit(whole.edits, dict(checked.report.texts))
    title = f"Use the room that is left ({counted(len(room(planned)), 'step')}; {room_words(whole)})"
    yield lsp.CodeAction(f"advisor: {title}", kind=QUICK, edit=edit)


def is_at_model(checked: Checked, file: str, at: Any) -> bool:
    """Whether a range has the line of the model, where what is about the whole run is offered."""
    span = checked.found.run.config.span(MODEL)
    return span is not None and file == checked.path and at.start.line <= span.line - 1 <= at.end.line


def everything(checked: Checked) -> Iterator[Any]:
    """All findings that can be fixed without changing the training."""
    if not any(each.fix and each.fix.safe and not each.fix.by_choice for each in shown(checked.report)):
        return
    result = all_safe(checked)
    edits: tuple[Edit, ...] = tuple(edit for document in result.documents for edit in document.edits())
    if edits:
        edit = workspace_edit(edits, dict(checked.report.texts))
        yield lsp.CodeAction("advisor: Fix all that is safe", kind=FIX_ALL, edit=edit)


def _ignoring(finding: Finding, checked: Checked) -> Any:
    """A comment that keeps one rule quiet: at the line, or above one that has a comment; in the YAML for a JSON."""
    rule, path = finding.rule, checked.path
    lines = checked.text.split("\n")
    if finding.place.file != path or not finding.place.line:
        change = insertion(0, 0, f"# advisor: file-ignore[{rule}]\n")
    else:
        number = finding.place.line - 1
        row = lines[number].rstrip("\r")
        if found := IGNORED.search(row):
            change = insertion(number, units(row[: found.end(1)]), f", {rule}")
        elif "#" in row:
            indent = row[: len(row) - len(row.lstrip())]
            change = insertion(number, 0, f"{indent}# advisor: ignore[{rule}]\n")
        else:
            change = insertion(number, units(row.rstrip()), f"  # advisor: ignore[{rule}]")
    uri = uri_of(path)
    edit = lsp.TextDocumentEdit(lsp.OptionalVersionedTextDocumentIdentifier(uri), [change])
    return lsp.CodeAction(f"advisor: Ignore {rule} here", kind=QUICK, edit=lsp.WorkspaceEdit(document_changes=[edit]))


def insertion(line: int, column: int, text: str) -> Any:
    """Text put in at a place."""
    place = lsp.Position(line, column)
    return lsp.TextEdit(lsp.Range(place, place), text)
