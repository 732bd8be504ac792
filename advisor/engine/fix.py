"""What ``--fix`` writes: the safe lint fixes, then the plan if it ends well; all files of a call at once."""

from collections.abc import Iterable
from dataclasses import replace

from advisor.documents import Change, Document, as_path
from advisor.engine.check import Options, check_run, finding_of, lint_hits, planned
from advisor.engine.finding import Finding, Report
from advisor.engine.plan import Plan
from advisor.engine.plan_findings import step_findings, unified
from advisor.engine.suppression import is_ignored
from advisor.errors import InputError
from advisor.memory import estimate
from advisor.opening import Opened
from advisor.record import record
from advisor.run import Run
from advisor.run.build import prefixed, rebuilt, with_config
from advisor.run.deepspeed import Section, has_shipped_name

MOST_PASSES = 4


@record(eq=False)
class Fixed:
    """A run after its fixes: documents with changes pending, what was done, and the plan that was followed, if any."""

    before: Run
    run: Run
    done: tuple[Finding, ...]
    plan: Plan | None

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents to write."""
        found = [self.run.config]
        section = self.run.deepspeed
        if section is not None and not section.prefix:
            found.append(section.document)
        return tuple(document for document in found if is_changed(document))

    def files(self) -> dict[str, bytes]:
        """The new content of each file. A change that cannot be written is a ``PatchError``."""
        return {document.file: document.patched() for document in self.documents}

    def diff(self) -> str:
        """All changes as one unified diff."""
        texts = [("" if d.is_new else d.text, d.patched().decode(), d.file) for d in self.documents]
        return "".join(unified(*text) for text in texts)


def is_changed(document: Document) -> bool:
    """Whether there is anything to write: changes, or a file of our own making."""
    return not has_shipped_name(document.file) if document.is_new else bool(document.pending)


def fixed(opened: Opened, options: Options, *, unsafe: bool) -> Fixed:
    """The run with its lint fixes and its plan made, as far as they are allowed."""
    before = opened.run
    run, done = lint_fixed(before, options, unsafe=unsafe)
    options = replace(options, safe_only=not unsafe)
    plan = planned(run, estimate(run), options)
    if plan is None or not plan.steps or plan.verdict not in {"fits", "tight"}:
        return Fixed(before, run, tuple(done), None)
    return Fixed(before, plan.end.run, (*done, *step_findings(plan, safe_only=options.safe_only)), plan)


def lint_fixed(run: Run, options: Options, *, unsafe: bool) -> tuple[Run, list[Finding]]:
    """The run with the edits of its lint findings; of two that touch the same key, the second is found anew."""
    done: list[Finding] = []
    for _ in range(MOST_PASSES):
        run, found, held_back = lint_pass(run, options, unsafe=unsafe)
        done += found
        if not found or not held_back:
            break
    return run, done


def lint_pass(run: Run, options: Options, *, unsafe: bool) -> tuple[Run, list[Finding], bool]:
    """The run with edits that touch no key twice, what they answer, and whether another one was held back."""
    touched: set[tuple[str, object]] = set()
    done: list[Finding] = []
    held_back = False
    for rule, hit in list(lint_hits(run, options)):
        allowed = hit.edits and not rule.offer and (unsafe or rule.is_safe(run))
        paths = {(hit.document, as_path(change.path)) for change in hit.edits}
        if not allowed or is_ignored(run, found := finding_of(run, rule, hit)):
            continue
        if paths & touched:
            held_back = True
            continue
        try:
            run = with_changes(run, hit.document, list(hit.edits))
        except InputError:  # the edit would put a value in force that cannot be read: that one comes first, by hand
            continue
        done.append(found)
        touched |= paths
    return run, done, held_back


def with_changes(run: Run, document: str, changes: list[Change]) -> Run:
    """The run with changes made to one of its documents."""
    section = run.deepspeed
    if document == "config" or section is None:
        return with_config(run, changes)
    if section.prefix:
        return with_config(run, [prefixed(change, section.prefix) for change in changes])
    if section.outside:
        raise InputError("lies outside the repository", section.file)
    return rebuilt(run, run.config, Section(section.document.changed(*changes)))


def report_after(result: Fixed, options: Options) -> Report:
    """What is left to say once the files are written."""
    run = rebuilt(result.run, result.run.config.rebased(), rebased(result.run))
    return replace(check_run(Opened(run), options), fixed=len(result.done), applied=result.done)


def rebased(run: Run) -> Section | None:
    """The DeepSpeed config as it will be on disk."""
    section = run.deepspeed
    if section is None:
        return None
    if section.prefix:
        return Section(run.config.rebased(), section.prefix)
    return Section(section.document.rebased()) if section.document.pending else section


def merged(results: Iterable[Fixed]) -> dict[str, bytes]:
    """All files of one call. A file that two runs change differently is left to the first."""
    files: dict[str, bytes] = {}
    for result in results:
        for file, content in result.files().items():
            files.setdefault(file, content)
    return files
