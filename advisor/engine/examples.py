"""Runs the examples inside rules: they are their tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from advisor.documents import read
from advisor.engine.example import Example, text_of
from advisor.engine.fix import with_hit
from advisor.engine.rule import Rule
from advisor.engine.speedups import back
from advisor.engine.states import State, Step
from advisor.engine.steps import alternatives, best_step
from advisor.opening import Context, LoadedRun, open_run
from advisor.run import Run
from advisor.run.build import edited
from advisor.run.stack import read_stack
from advisor.util import GIB


def failures_of(rule: Rule) -> Iterator[str]:
    """What the examples of a rule promise and do not keep, one line each."""
    if not any(example.expects_finding for example in rule.expanded):
        yield "no example in which it fires"
    if all(example.expects_finding for example in rule.expanded):
        yield "no example in which it stays silent"
    for number, example in enumerate(rule.expanded, 1):
        for failure in _example_failures(rule, example):
            yield f"example {number}: {failure}"


def _example_failures(rule: Rule, example: Example) -> Iterator[str]:
    """What one example promises and does not keep."""
    with tempfile.TemporaryDirectory() as folder:
        run = opened(example, Path(folder)).run
        after, memory = outcome(rule, run)
        if after is None:
            if example.expects_finding:
                yield "should fire, but is silent"
            return
        if not example.expects_finding:
            yield f"should be silent, but fires on\n{indent(text_of(example.before), '    ')}".rstrip()
            return
        yield from differences(example, run, after, memory)


def opened(example: Example, folder: Path) -> LoadedRun:
    """The run of an example, its files written to ``folder``."""
    config = folder / "config.yaml"
    config.write_text(text_of(example.before), encoding="utf-8")
    if example.deepspeed is not None:
        name = str(read(config).get("deepspeed") or "deepspeed.json")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text_of(example.deepspeed), encoding="utf-8")
    context = Context(working_directory=str(folder), gpus=example.gpus or None, stack=read_stack(example.stack))
    return open_run(read(config), context)


def outcome(rule: Rule, run: Run) -> tuple[Run | None, str]:
    """The run after the rule, and what it did to the peak; None if it stays silent."""
    if rule.stage == "lint":
        hits = list(rule.finds(run))
        for hit in hits:
            run = with_hit(run, hit)
        return (run if hits else None), ""
    if not rule.when(run):
        return None, ""
    if run.model is None or run.hardware is None:
        edits = alternatives(rule, run)
        return (edited(run, edits[0], rule.id) if edits else None), ""
    start = State(run)
    found = best_step(rule, start) if rule.stage == "fit" else back(rule, start)
    if not isinstance(found, Step):
        return None, ""
    return found.after.run, f"{found.before.needed / GIB:.1f} -> {found.after.needed / GIB:.1f} GiB"


def differences(example: Example, before: Run, after: Run, memory: str) -> Iterator[str]:
    """Where the texts or the numbers are not those of the example."""
    if example.after is not None and after.config.patched().decode() != text_of(example.after):
        yield f"the YAML becomes\n{after.config.patched().decode()}"
    if example.after_deepspeed is not None:
        written = after.deepspeed.document.patched().decode() if after.deepspeed else ""
        if written.strip() != text_of(example.after_deepspeed).strip():
            yield f"the DeepSpeed JSON becomes\n{written}"
    if example.after is None and example.after_deepspeed is not None and after.config.pending:
        yield f"the YAML changes as well\n{after.config.patched().decode()}"
    if example.memory is not None and memory != example.memory:
        yield f"the memory goes {memory}, not {example.memory}"
    if after.global_batch_size != before.global_batch_size:
        yield f"the global batch becomes {after.global_batch_size}"
