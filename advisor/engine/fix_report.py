"""What is left to say once fixes are written: a fresh check, what was done, how to undo it."""

import os

from advisor.documents.repository import checkout_of
from advisor.engine.answering import answered
from advisor.engine.check import check_run
from advisor.engine.finding import Report
from advisor.engine.fix import Fixed, as_written, relative
from advisor.engine.options import Options
from advisor.record import replace


def report_after(result: Fixed, options: Options) -> Report:
    """What is left to say once the files are written."""
    written = as_written(result)
    report = answered(written, options, check_run(written, options))
    created = tuple(document.file for document in result.documents if document.is_new)
    return replace(report, fixed=len(result.done), applied=result.done, created=created, undo=undo(result))


def undo(result: Fixed) -> str:
    """What takes the edits back, as far as git knows the files; empty where it does not."""
    from shlex import quote

    old = [quote(relative(document.file)) for document in result.documents if not document.is_new]
    new = [quote(relative(document.file)) for document in result.documents if document.is_new]
    if not all(checkout_of(os.path.dirname(document.file) or ".") for document in result.documents):
        return ""
    parts = (f"git checkout -- {' '.join(old)}" if old else "", f"rm {' '.join(new)}" if new else "")
    return " && ".join(part for part in parts if part)
