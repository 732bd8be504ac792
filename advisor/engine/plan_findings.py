"""Steps of a plan, and offers -> findings, each with its edits against the files as the step before left them."""

import os
from collections.abc import Iterable

from advisor.documents import Document, Edit, PatchError, as_path
from advisor.engine.cost_text import cost_text
from advisor.engine.finding import Finding, Fix, WholePlan
from advisor.engine.locations import run_place
from advisor.engine.rule import said
from advisor.engine.states import Plan, State, Step
from advisor.run import Run
from advisor.util import gib


def step_findings(steps: Iterable[Step], *, numbered: bool = True, safe_only: bool = False) -> list[Finding] | None:
    """One note per step, each with its own fix; None where the texts have no place for one of them."""
    found: list[Finding] = []
    for number, step in enumerate(steps, 1):
        finding = step_finding(step, number if numbered else 0, safe_only=safe_only)
        if finding is None:
            return None
        found.append(finding)
    return found


def whole_plan(start: State, plan: Plan) -> WholePlan | None:
    """The steps of a plan as one; None where it has none, or the texts have no place for them."""
    placed = _placed_edits(start.run, plan.end.run, shown=True) if plan.steps else None
    if placed is None:
        return None
    edits, diff = placed
    safe = plan.safe
    return WholePlan(edits, start.needed, plan.end.needed, plan.verdict, safe, diff, seconds_of(start, plan.end))


def seconds_of(before: State, after: State) -> tuple[float, float] | None:
    """The time of a step before and after, where both are known."""
    old, new = before.shown_seconds, after.shown_seconds
    return None if old is None or new is None else (old, new)


def step_finding(step: Step, number: int = 0, *, safe_only: bool = False) -> Finding | None:
    """A step of the plan by its number, or without one an offer to give something back; None without a place."""
    placed = _placed_edits(step.before.run, step.after.run, shown=number > 0)
    if placed is None:
        return None
    edits, diff = placed
    rule, runs = step.rule, (step.before.run, step.after.run)
    end = step.after.estimate
    fix = Fix(
        step.safe,
        edits,
        step.before.needed,
        step.after.needed,
        end.verdict,
        diff,
        seconds=seconds_of(step.before, step.after),
        condition=end.condition,
        needed=(step.before.estimate.needed.high, end.needed.high),
        host=(step.before.estimate.host_peak, end.host_peak),
    )
    caveat = rule.caveat(step.before.run, step.after.run)
    message = f"{rule.title}: {gib(step.before.needed)} -> {gib(step.after.needed)} per GPU"
    return Finding(
        rule=rule.id,
        level="note",
        message=message,
        place=run_place(step.before.run),
        title=rule.title,
        cost=" ".join(filter(None, (rule.cost, caveat, cost_text(step.before, step.after)))),
        why=rule.why,
        source=rule.source,
        fix=fix,
        help=_given_elsewhere(*runs),
        label=rule.named(*runs),
        because=said(rule.because, *runs),
        price=" ".join(filter(None, (said(rule.price, *runs), caveat))),
        requires=rule.requires(*runs),
        step=number or None,
        offered=step.safe or not safe_only,
    )


def _given_elsewhere(before: Run, after: Run) -> tuple[str, ...]:
    """The keys of a step that the command line gives: to write them into the file would not be enough."""
    config = before.config
    if not config.given:
        return ()
    changed = (as_path(change.path) for change in after.config.pending[len(config.pending) :])
    keys = dict.fromkeys(".".join(map(str, path)) for path in changed if config.is_given(path))
    return tuple(f"`{key}` is given on the command line: change it there" for key in keys)


def _placed_edits(before: Run, after: Run, *, shown: bool) -> tuple[tuple[Edit, ...], str] | None:
    """The same as ``step_edits``; None where a text has no place for one: keys written as no edit can keep them."""
    try:
        return step_edits(before, after, shown=shown)
    except PatchError:
        return None


def step_edits(before: Run, after: Run, *, shown: bool) -> tuple[tuple[Edit, ...], str]:
    """The edits of one step, and their diff if it is shown, from documents with everything before it written."""
    edits: list[Edit] = []
    diffs: list[str] = []
    for old, new in changed_documents(before, after):
        base = old.rebased() if old is not None else None
        target = new if base is None else _rebased_onto(base, old, new)
        edits += target.edits()
        if shown:
            diffs.append(unified(base.text if base else "", target.patched().decode(), new.file))
    return tuple(edits), "".join(diffs)


def changed_documents(before: Run, after: Run) -> list[tuple[Document | None, Document]]:
    """The documents that a step changed or made: (as it was, as it is)."""
    found: list[tuple[Document | None, Document]] = []
    if after.config is not before.config:
        found.append((before.config, after.config))
    old = before.deepspeed.document if before.deepspeed and not before.deepspeed.prefix else None
    new = after.deepspeed.document if after.deepspeed and not after.deepspeed.prefix else None
    if new is not None and new is not old and new.values_mapping is not (old.values_mapping if old else None):
        same_file = old is not None and old.file == new.file
        found.append((old if same_file else None, new))
    return found


def _rebased_onto(base: Document, old: Document | None, new: Document) -> Document:
    """What ``new`` has to change beyond ``old``, as changes of ``base``."""
    done = len(old.pending) if old is not None else 0
    return base.changed(*new.pending[done:])


def unified(old: str, new: str, file: str, *, for_git: bool = False) -> str:
    """A unified diff with one line of context; ``for_git`` as ``git apply`` takes it."""
    import difflib

    before, after = (quoted(f"{side}/{file}") if for_git else quoted(file) for side in "ab")
    name = before if old else "/dev/null"
    lines = difflib.unified_diff(lines_of(old), lines_of(new), name, after, n=1)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def lines_of(text: str) -> list[str]:
    """The lines as git counts them, each with its end."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [last for last in text.split("\n")[-1:] if last]


def quoted(file: str) -> str:
    """A name as ``git diff`` writes it: quoted if it holds what could forge a line or steer a terminal."""
    if file.isprintable() and not {'"', "\\"} & set(file):
        return file
    safe = "".join(
        mark if mark.isprintable() else _octal(mark) for mark in file.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{safe}"'


def _octal(mark: str) -> str:
    """A character's bytes in octal."""
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(mark))
