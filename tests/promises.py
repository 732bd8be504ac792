"""What a fix promises: a fresh check says what its report said, a second fix changes nothing, and no error is new."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.documents import PatchError, read, write_all
from advisor.engine.check import check_run
from advisor.engine.finding import Finding, Report
from advisor.engine.fix import Fixed, fixed
from advisor.engine.fix_report import report_after
from advisor.engine.options import Options
from advisor.errors import InputError
from advisor.opening import Context, LoadedRun, open_run


@dataclass
class Kept:
    """What became of one fix: whether it wrote anything, and each promise that it broke."""

    wrote: bool = False
    broken: dict[str, str] = field(default_factory=dict[str, str])


def kept(file: Path, context: Context, options: Options, *, unsafe: bool) -> Kept:
    """Fix a file, read it again, and put everything back. What cannot be read is an ``InputError``."""
    opened = open_run(read(file), context)
    return kept_of(file, opened, lambda: check_run(opened, options), options, unsafe=unsafe)


def kept_of(file: Path, opened: LoadedRun, before: Callable[[], Report], options: Options, *, unsafe: bool) -> Kept:
    """The same of a run that is open already, whose report of ``before`` is asked for where something was written."""
    assert opened.context is not None
    result = fixed(opened, options, unsafe=unsafe)
    try:
        files = result.files()
    except PatchError:  # refused in one piece: nothing is written
        return Kept()
    if not files:
        return Kept()
    old = before()
    with written(files):
        return Kept(True, dict(broken(file, result, old, opened.context, options, unsafe=unsafe)))


def broken(
    file: Path, result: Fixed, before: Report, context: Context, options: Options, *, unsafe: bool
) -> Iterator[tuple[str, str]]:
    """Each promise that does not hold for what is on disk, and how."""
    said = report_after(result, options)
    try:
        opened = open_run(read(file), context)
        found = check_run(opened, options)
    except InputError as error:
        yield "cannot be read", str(error)
        return
    new = errors(found) - errors(before)
    if new:
        yield "new error", ", ".join(sorted(new.elements()))
    if differing := differences(facts(said), facts(found)):
        yield "report differs", differing
    if result.plan is not None and promised(result) != (figures(found), found.verdict):
        yield "promise differs", f"promised {promised(result)}, found {figures(found)}, {found.verdict}"
    second = fixed(opened, options, unsafe=unsafe)
    if second.documents:
        yield "second fix", f"{[finding.rule for finding in second.done]}\n{second.diff()}"


def errors(report: Report) -> Counter[str]:
    """The errors of a report, by rule."""
    return Counter(finding.rule for finding in report.findings if finding.level == "error")


def promised(result: Fixed) -> tuple[int | None, str]:
    """The peak and the verdict with which the plan that was followed ends, as its last step says them."""
    last = result.done[-1].fix if result.done else None
    steps = [one.fix for one in result.done if one.step is not None and one.fix is not None]
    last = steps[-1] if steps else last
    return (last.after if last else None), str(last.verdict if last else None)


def figures(report: Report) -> int | None:
    """The peak that a plan's step speaks of."""
    return report.estimate.needed.low if report.estimate else None


def facts(report: Report) -> dict[str, Any]:
    """All that a report says."""
    estimate = report.estimate
    sizes = (estimate.needed, estimate.allocated_peak, estimate.host_peak) if estimate else None
    return {
        "verdict": report.verdict,
        "hardware": report.hardware,
        "summary": report.summary,
        "sizes": sizes,
        "planned": report.planned.needed if report.planned else None,
        "skipped": report.skipped,
        "findings": [told(finding) for finding in report.findings],
        "texts": dict(report.texts),
    }


def told(finding: Finding) -> tuple[Any, ...]:
    """What is shown of a finding."""
    edits = finding.fix.edits if finding.fix else ()
    return (finding.rule, finding.level, finding.message, finding.place, finding.help, finding.step, edits)


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Where two reports differ."""
    found: list[str] = []
    for name in one:
        left, right = one[name], other[name]
        if left == right:
            continue
        if name == "findings":
            only_left = [finding[:4] for finding in left if finding not in right]
            only_right = [finding[:4] for finding in right if finding not in left]
            found.append(f"said only: {only_left}; found only: {only_right}")
        else:
            found.append(f"{name}: said {left!r}, found {right!r}"[:400])
    return "; ".join(found)


@contextmanager
def written(files: Mapping[str, bytes]) -> Iterator[None]:
    """Files with this content for a while."""
    old = {path: path.read_bytes() if path.exists() else None for path in map(Path, files)}
    try:
        write_all(dict(files))
        yield
    finally:
        for path, content in old.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
