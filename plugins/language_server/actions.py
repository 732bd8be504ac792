"""Quick fixes: this finding, all safe ones, the options of the answer, each step, the GPUs, comments that ignore."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.documents import Edit
from advisor.engine.finding import Finding
from advisor.report.wording import SAFETY, VERDICT_RULES

from .checking import Checked, all_safe
from .diagnostics import shown
from .hovering import MODEL
from .options import of_answer
from .planning import Planned
from .stating import stating
from .texts import insertion, lsp, range_of, units, uri_of, workspace_edit

FIX_ALL = "source.fixAll.advisor"
QUICK = lsp.CodeActionKind.QuickFix
IGNORED = re.compile(r"#\s*advisor:\s*ignore\[([^\]]*)\]")


def actions(checked: Checked, planned: Planned | None, file: str, at: Any, wanted: Sequence[Any]) -> Iterator[Any]:
    """What can be done at a range of one file of a run; ``planned`` is the run with its answer, once there is one."""
    here = [each for each in shown(checked.report) if each.place.file == file and meets(each, checked, at)]
    kinds = [kind.value if hasattr(kind, "value") else kind for kind in wanted]
    if not kinds or any("quickfix".startswith(kind) for kind in kinds):
        for finding in here:
            yield from _of_finding(finding, checked)
        if planned is not None and is_about_the_run(checked, file, at):
            yield from of_answer(planned, QUICK)
        if file == checked.path and (at.start.line == 0 or is_about_the_run(checked, file, at)):
            yield from stating(checked, QUICK)
        for finding in here:
            yield _ignoring(finding, checked)
    if not kinds or any(FIX_ALL.startswith(kind) for kind in kinds):
        yield from everything(checked)


def meets(finding: Finding, checked: Checked, at: Any) -> bool:
    """Whether a finding stands on the lines of a range."""
    span = range_of(finding.place, checked.report.texts.get(finding.place.file, ""))
    return span.start.line <= at.end.line and at.start.line <= span.end.line


def is_about_the_run(checked: Checked, file: str, at: Any) -> bool:
    """Whether a range has the line of the model, or of the verdict, where what is about the whole run is offered."""
    span = checked.found.run.config.span(MODEL)
    if span is not None and file == checked.path and at.start.line <= span.line - 1 <= at.end.line:
        return True
    verdicts = (each for each in shown(checked.report) if each.rule in VERDICT_RULES and each.place.file == file)
    return any(meets(each, checked, at) for each in verdicts)


def _of_finding(finding: Finding, checked: Checked) -> Iterator[Any]:
    """The fix of one finding, preferred where it changes nothing of the training."""
    if finding.fix is None:
        return
    title = f"Fix {finding.rule}" + ("" if finding.fix.safe else f" ({SAFETY[False]})")
    edit = workspace_edit(finding.fix.edits, checked.report.texts)
    yield lsp.CodeAction(f"advisor: {title}", kind=QUICK, edit=edit, is_preferred=finding.fix.safe)


def everything(checked: Checked) -> Iterator[Any]:
    """All findings that can be fixed without changing the training."""
    if not any(each.fix and each.fix.safe and not each.fix.by_choice for each in shown(checked.report)):
        return
    result = all_safe(checked)
    edits: tuple[Edit, ...] = tuple(edit for document in result.documents for edit in document.edits())
    if edits:
        edit = workspace_edit(edits, checked.report.texts)
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
