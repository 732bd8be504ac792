"""One input through the whole pipeline in one process: parse, open, check, render, fix, and check again."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from advisor.documents import read
from advisor.engine import plan
from advisor.engine.check import check_run
from advisor.engine.options import Options
from advisor.errors import InputError
from advisor.opening import Context, open_run
from advisor.report import render_check

from ..promises import kept_of
from .check import SECONDS, watched


def piped(folder: Path, raw: bytes, other: tuple[str, bytes | None], gpus: str, form: str, *, unsafe: bool) -> str:
    """What became of an input: ``refused``, ``as it was`` or ``patched``, with every promise of the fix kept."""
    os.chdir(folder)
    (folder / "run.yaml").write_bytes(raw)
    name, content = other
    if content is not None:
        (folder / name).write_bytes(content)
    with watched(2 * SECONDS), each_plan_once():
        return outcome(Path("run.yaml"), Context(gpus=gpus), form, unsafe=unsafe)


def outcome(file: Path, context: Context, form: str, *, unsafe: bool) -> str:
    """The same, of a file that is there."""
    try:
        opened = open_run(read(file), context)
    except InputError:
        return "refused"
    before = check_run(opened, Options())
    render_check([before], form)
    one = kept_of(file, opened, lambda: before, Options(), unsafe=unsafe)
    assert not one.broken, "\n".join(f"{kind}: {how}" for kind, how in one.broken.items())
    return "patched" if one.wrote else "as it was"


@contextmanager
def each_plan_once() -> Iterator[None]:
    """The plan of one and the same run is worked out once: check and fix ask for it in turn. A run read again is another."""
    plan_fit, made = plan.plan_fit, dict[Any, Any]()

    def remembered(start: Any, flowchart: Any, *, safe_only: bool = False, **_: Any) -> Any:
        rules = tuple((tier.name, tuple(rule.id for rule in tier.rules)) for tier in flowchart)
        key = (start.run, rules, safe_only)  # a run is its own identity, and the key keeps it alive
        if key not in made:
            made[key] = plan_fit(start, flowchart, safe_only=safe_only)
        return made[key]

    plan.plan_fit = remembered
    try:
        yield
    finally:
        plan.plan_fit = plan_fit
