"""What ``--fix`` writes: lint fixes and the plan, until nothing is left to do; all files of a call at once."""

import os
from collections.abc import Iterable
from functools import partial

from advisor.documents import Change, Document, as_path
from advisor.engine.check import planned
from advisor.engine.finding import Finding
from advisor.engine.in_plan import is_in_plan
from advisor.engine.lint import finding_of, lint_hits
from advisor.engine.options import Options, room_rules
from advisor.engine.plan_findings import step_findings, unified
from advisor.engine.regression import new_errors, stops_less
from advisor.engine.rule import Hit
from advisor.engine.states import Plan, State
from advisor.engine.steps import host_suffices
from advisor.engine.suppression import is_ignored
from advisor.errors import InputError
from advisor.memory import estimate
from advisor.opening import Context, LoadedRun, deepspeed_for, open_run
from advisor.record import record, replace
from advisor.run import Run
from advisor.run.build import prefixed, rebuilt, with_config
from advisor.run.deepspeed import Section, has_shipped_name

MOST_PASSES = 10
MOST_ROUNDS = 4
MODEL_KEYS = ("base_model", "base_model_config", "model_config", "overrides_of_model_config")


@record(eq=False)
class Fixed:
    """A run after its fixes: documents with changes pending, what was done, and the plan that was followed, if any."""

    before: Run
    run: Run
    done: tuple[Finding, ...]
    plan: Plan | None
    context: Context | None = None
    """As of ``LoadedRun``."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents to write."""
        found = [self.run.config]
        section = self.run.deepspeed
        if section is not None and not section.prefix:
            found.append(section.document)
        return tuple(document for document in found if _is_changed(document))

    def files(self) -> dict[str, bytes]:
        """The new content of each file. A change that cannot be written is a ``PatchError``."""
        return {document.file: document.patched() for document in self.documents}

    def texts(self) -> dict[str, str]:
        """The new text of each file. ``PatchError`` as of ``files``."""
        return {file: content.decode() for file, content in self.files().items()}

    def diff(self) -> str:
        """All changes as one unified diff, which ``git apply`` takes in the folder where it was made."""
        texts = [("" if d.is_new else d.text, d.patched().decode(), relative(d.file)) for d in self.documents]
        return "".join(unified(*text, for_git=True) for text in texts)


def relative(file: str) -> str:
    """A file's name from the working directory, where it lies below it."""
    name = os.path.relpath(file) if os.path.isabs(file) else os.path.normpath(file)
    return file if name.startswith("..") else name


def _is_changed(document: Document) -> bool:
    """Whether there is anything to write: changes, or a file of our own making."""
    return not has_shipped_name(document.file) if document.is_new else bool(document.pending)


def fixed(opened: LoadedRun, options: Options, *, unsafe: bool) -> Fixed:
    """The run with its lint fixes and its plan made, as far as they are allowed and add no error."""
    result = settled(opened, options, unsafe=unsafe, memory=False)
    # A fix of a lint rule needs memory that no plan gives back: left out, unless the run does not start without it.
    if new_errors(opened.run, result.run) and not stops_less(opened.run, result.run):
        return settled(opened, options, unsafe=unsafe, memory=True)
    return result


def settled(opened: LoadedRun, options: Options, *, unsafe: bool, memory: bool) -> Fixed:
    """Lint fixes and plan in turn, until neither has anything left to do; ``memory`` as in ``new_errors``."""
    run, done, plan = opened.run, list[Finding](), None
    safe = replace(options, safe_only=not unsafe)
    for _ in range(MOST_ROUNDS):
        run, found = _lint_fixed(replace(opened, run=run), options, unsafe=unsafe, memory=memory)
        if plan is not None and found:
            plan = _ending_in(plan, run)
        done += found
        more = planned(run, estimate(run), safe)
        if more is None or not more.steps or not more.ends_well:
            break
        if step_findings(more.steps) is None:
            break
        plan = more if plan is None else joined(plan, more)
        run = more.end.run
    if options.faster:
        run, found = _made_faster(replace(opened, run=run), options, unsafe=unsafe, memory=memory)
        done += found
    steps = step_findings(plan.steps, safe_only=safe.safe_only) if plan is not None else None
    return Fixed(opened.run, run, (*done, *(steps or ())), plan, opened.context)


def _made_faster(opened: LoadedRun, options: Options, *, unsafe: bool, memory: bool) -> tuple[Run, list[Finding]]:
    """A run that fits, made faster by what room is left, and linted again, until neither has anything left to do."""
    run, done = opened.run, list[Finding]()
    for _ in range(MOST_ROUNDS):
        known = estimate(run)
        if known is None or known.verdict != "fits":
            break
        faster = options.memo.speedup(run, room_rules(options))
        placed = step_findings(faster, numbered=False)
        if not placed:
            break
        run, found = _lint_fixed(replace(opened, run=faster[-1].after.run), options, unsafe=unsafe, memory=memory)
        done += [*placed, *found]
    return run, done


def _ending_in(plan: Plan, run: Run) -> Plan:
    """The plan with the lint fixes that its edits entail as part of its last step, whose figures they may change."""
    *others, last = plan.steps
    end = State(run)
    return replace(plan, steps=(*others, replace(last, after=end)), end=end)


def joined(plan: Plan, more: Plan) -> Plan:
    """Two plans, one after the other."""
    return Plan((*plan.steps, *more.steps), more.end)


def _lint_fixed(opened: LoadedRun, options: Options, *, unsafe: bool, memory: bool) -> tuple[Run, list[Finding]]:
    """The run with the edits of its lint findings, asked again until there are none left."""
    run, done = opened.run, list[Finding]()
    for _ in range(MOST_PASSES):
        run, found = _lint_pass(replace(opened, run=run), options, unsafe=unsafe, memory=memory)
        done += found
        if not found:
            break
    return run, done


def _lint_pass(opened: LoadedRun, options: Options, *, unsafe: bool, memory: bool) -> tuple[Run, list[Finding]]:
    """The run with edits that touch no key twice and add no error, and what they answer."""
    run = opened.run
    touched: set[tuple[str, object]] = set()
    done: list[Finding] = []
    for rule, hit in lint_hits(run, options):
        allowed = hit.changes and not rule.offer and (unsafe or rule.is_safe(run))
        paths = {(name, as_path(change.path)) for name, changes in hit.changes for change in changes}
        if not allowed or paths & touched or is_ignored(run, found := finding_of(run, rule, hit)):
            continue
        if not rule.is_safe(run) and is_in_plan(run, hit.changes, options):
            continue
        edited = partial(attempted, replace(opened, run=run), hit, memory=memory)
        after = options.memo.after(run, hit, edited, memory=memory)
        if after is None:
            continue
        run = after
        done.append(found)
        touched |= paths
    return run, done


def attempted(opened: LoadedRun, hit: Hit, *, memory: bool) -> Run | None:
    """The run with the edits of one finding; None where they cannot be made, or add an error."""
    run = opened.run
    try:
        after = _remodelled(with_hit(run, hit), run, opened.context)
    except InputError:
        return None
    put_in_force = len(after.unreadable) > len(run.unreadable)  # such a value comes first, by hand
    if put_in_force or new_errors(run, after, memory=memory):
        return None
    return after if _has_host_for(run, after) or stops_less(run, after) else None


def _has_host_for(before: Run, after: Run) -> bool:
    """Whether the hosts hold what an edit offloads, as far as both runs can be estimated."""
    if any(run.model is None or run.hardware is None or run.unreadable for run in (before, after)):
        return True
    old, new = State(before), State(after)
    return new.host_peak <= old.host_peak or host_suffices(old, new)


def with_hit(run: Run, hit: Hit) -> Run:
    """The run with all edits of a finding made."""
    for name, changes in hit.changes:
        run = with_changes(run, name, list(changes))
    return run


def with_changes(run: Run, document: str, changes: list[Change]) -> Run:
    """The run with changes made to one of its documents."""
    section = run.deepspeed
    if document == "config" or section is None:
        return _reopened(with_config(run, changes), run)
    if section.prefix:
        return with_config(run, [prefixed(change, section.prefix) for change in changes])
    if section.outside:
        raise InputError("is outside the repository", section.file)
    return rebuilt(run, run.config, Section(section.document.changed(*changes)))


def _reopened(run: Run, before: Run) -> Run:
    """The run with the DeepSpeed config that its YAML names or holds now, where that is another than before."""
    if run.config.get("deepspeed") == before.config.get("deepspeed"):
        return run
    section, editable = deepspeed_for(run.config, Context(working_directory=run.working_directory))
    return rebuilt(replace(run, deepspeed_editable=editable), run.config, section)


def _remodelled(run: Run, before: Run, context: Context | None) -> Run:
    """The run with the model that its YAML names now, where that is another than before."""
    if context is None or all(run.config.get(key) == before.config.get(key) for key in MODEL_KEYS):
        return run
    found = open_run(run.config, context).run
    known = replace(run, model=found.model, model_reason=found.model_reason, model_config=found.model_config)
    return rebuilt(known, run.config, run.deepspeed)


def as_written(result: Fixed) -> LoadedRun:
    """The run read again from what was written: the YAML's own text, and the JSON from where it lies now."""
    run, context = result.run, result.context
    config = run.config.rebased()
    if run.is_json_alone:
        return LoadedRun(rebuilt(run, config, rebased(run)))
    found = open_run(config, context) if context is not None else None
    if found is not None and (found.run.deepspeed is not None or run.deepspeed is None):
        return found
    section, editable = deepspeed_for(config, Context(working_directory=run.working_directory))
    if section is None:  # a JSON that is named from another folder
        section, editable = rebased(run), run.deepspeed_editable
    return LoadedRun(rebuilt(replace(run, deepspeed_editable=editable), config, section), context=context)


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
