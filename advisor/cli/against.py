"""``check --against``: each run next to what it was where the branch left another revision, as git knows it."""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

from advisor.cli.changed_since import base_in
from advisor.cli.options import CheckOptions
from advisor.documents import parse
from advisor.documents.discovery import SUFFIXES
from advisor.documents.git import FILES, Entry, answer, blob, git, top_of, tree
from advisor.engine.finding import OF_HOST, Against, Finding, Report
from advisor.errors import InputError
from advisor.opening import open_json
from advisor.record import record, replace
from advisor.report.fingerprint import code
from advisor.run import Run
from advisor.run.deepspeed.locate import deepspeed_candidates
from advisor.session import CheckedRun, Session, check_config, check_loaded
from advisor.util import MAX_BYTES, Buffers, read_start, regex

OPTION = "--against"
RENAMED = 0.5
MOST_RENAMED = 100
"""Of files that are gone, and of new ones."""
DIFF = (
    *("diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-cr-at-eol"),
    *("-U3", "--inter-hunk-context=0", "--diff-algorithm=default"),
)
HUNK = regex(r"^@@ -\S+ \+(\d+)(?:,\d+)? @@", re.MULTILINE)


def validate_against(paths: Sequence[str], options: CheckOptions) -> None:
    """Options with which it has no meaning are an ``InputError``."""
    for asked, name in ((options.fix, "--fix"), (options.diff, "--diff"), (options.patch, "-p"), ("-" in paths, "-")):
        if asked:
            raise InputError(f"{OPTION} compares and cannot be combined with `{name}`", remedy="give one of the two")


@record(eq=False)
class Base:
    """The commit of one repository that is compared with, and its files."""

    revision: str
    top: str
    files: Mapping[str, Entry]

    def text(self, path: str) -> bytes | None:
        """A file as it was; None where it was not there."""
        name = self.name(path)
        entry = self.files.get(name if name in self.files else self.renamed.get(name, name))
        return blob(self.top, entry) if entry is not None and entry.mode in FILES else None

    def name(self, path: str) -> str:
        """A path from the top, as git writes it."""
        folder, name = os.path.split(os.path.abspath(path))
        return os.path.relpath(os.path.join(os.path.realpath(folder), name), self.top).replace(os.sep, "/")

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """Old names of configs by new ones: each file that is gone, and the new one that is most like it."""
        kept = {name for name, entry in self.files.items() if entry.mode in FILES and name.endswith(SUFFIXES)}
        old = {name: lines_of(self.kept(name)) for name in islice(sorted(kept - self.there(kept)), MOST_RENAMED)}
        listed = map(os.fsdecode, answer(self.top, "ls-files", "-z").split(b"\0")) if old else ()
        new = {name for name in listed if name.endswith(SUFFIXES) and name not in self.files}
        now = {name: lines_of(_content_of(self.path(name))) for name in islice(sorted(self.there(new)), MOST_RENAMED)}
        alike = [(_similarity(was, is_), name, before) for name, is_ in now.items() for before, was in old.items()]
        found: dict[str, str] = {}
        for share, name, before in sorted(alike, reverse=True):
            if share >= RENAMED and name not in found and before not in found.values():
                found[name] = before
        return found

    def there(self, names: Iterable[str]) -> set[str]:
        """The names that are still there."""
        return {name for name in names if os.path.lexists(self.path(name))}

    def path(self, name: str) -> str:
        """Where a file of the repository lies."""
        return os.path.join(self.top, *name.split("/"))

    def kept(self, name: str) -> bytes:
        """A file of the commit; empty where a partial clone lacks it."""
        with suppress(InputError):
            return blob(self.top, self.files[name])
        return b""

    def lines(self, path: str) -> tuple[frozenset[int], frozenset[int]]:
        """The lines of a file that were changed or added, and those that a diff shows with them."""
        return diffed_lines(difference(self.text(path) or b"", _content_of(path)))


def _content_of(path: str) -> bytes:
    """A file as it is; empty where it cannot be read."""
    try:
        return read_start(path, MAX_BYTES)
    except OSError:
        return b""


def lines_of(content: bytes) -> Counter[bytes]:
    """How often each line is there."""
    return Counter(content.splitlines(keepends=True))


def _similarity(one: Counter[bytes], other: Counter[bytes]) -> float:
    """How much of the larger one are lines of both: from half on git calls it a rename (git-diff(1), -M)."""
    shared, *both = (sum(len(line) * count for line, count in lines.items()) for lines in (one & other, one, other))
    return shared / max(1, *both)


def difference(old: bytes, new: bytes) -> str:
    """A unified diff of two contents, as git makes it, in a folder where there are neither attributes nor settings."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("old", old), ("new", new)):
            Path(folder, name).write_bytes(content)
        return git(folder, *DIFF, "--", "old", "new").stdout.decode(errors="replace")


def diffed_lines(diff: str) -> tuple[frozenset[int], frozenset[int]]:
    """The lines that a unified diff adds, and all that it shows of the new file."""
    touched: set[int] = set()
    shown: set[int] = set()
    line = 0
    for row in diff.splitlines():
        if found := HUNK.match(row):
            line = int(found[1])
        elif line and row[:1] in {"+", " "}:
            shown.add(line)
            touched |= {line} if row[0] == "+" else set()
            line += 1
    return frozenset(touched), frozenset(shown)


def base_of(path: str, revision: str) -> Base:
    """The commit of the repository of a path. ``InputError`` where git, repository or revision is missing."""
    top = top_of(path, OPTION)
    return Base(revision, top, tree(top, base_in(top, revision, OPTION)))


def compared(found: CheckedRun, session: Session, base: Base) -> Report:
    """The report, with what was there before and does not count set apart."""
    then = _report_at(found, session, base)
    known = _known_findings(found.report, then) if then else ()
    kept = tuple(finding for finding in found.report.findings if all(finding is not each for each in known))
    lines = {file: base.lines(file) for file in found.report.texts}
    against = Against(
        base.revision,
        then,
        known,
        {file: touched for file, (touched, _) in lines.items()},
        {file: shown for file, (_, shown) in lines.items()},
        _has_changed(found.run, base),
    )
    return replace(found.report, findings=kept, against=against)


def _has_changed(run: Run, base: Base) -> bool:
    """Whether one of the run's files in the repository reads otherwise than then, ends of lines aside."""
    files = [run.config.file, *([run.deepspeed.file] if run.deepspeed else [])]
    inside = [file for file in files if not base.name(file).startswith("../")]
    return any((base.text(file) or b"").splitlines() != _content_of(file).splitlines() for file in inside)


def _report_at(found: CheckedRun, session: Session, base: Base) -> Report | None:
    """What was said of the config then, on today's hardware; None where it was not there or cannot be read."""
    run = found.run
    session = session.without_answers
    text = base.text(run.config.file)
    if text is None:
        return None
    try:
        if run.is_json_alone:
            return check_loaded(open_json(parse(text, run.config.file, "json"), session.context), session).report
        config = parse(text, run.config.file, "yaml")
        context = replace(session.context, buffers=_jsons_at(config.get("deepspeed"), run.config.file, base))
        return check_config(config, replace(session, context=context), hardware=run.hardware, speed=False).report
    except InputError:
        return None


def _jsons_at(named: object, file: str, base: Base) -> Buffers:
    """The DeepSpeed JSON that a YAML named then, as it was."""
    buffers = Buffers()
    if isinstance(named, str) and named:
        for candidate in deepspeed_candidates(parse(b"", file, "yaml"), named):
            text = base.text(candidate)
            if text is not None:
                buffers[os.path.abspath(candidate)] = text.decode(errors="replace")
    return buffers


def _known_findings(now: Report, then: Report) -> tuple[Finding, ...]:
    """What is found now at lines that read as they did then; with the verdict, its plan."""
    before = Counter(identity(finding, then) for finding in then.findings if finding.step is None)
    known: list[Finding] = []
    for finding in now.findings:
        key = identity(finding, now)
        if finding.step is None and before[key] > 0:
            before[key] -= 1
            known.append(finding)
    if any(finding.rule in {"does-not-fit", OF_HOST} for finding in known):
        known += [finding for finding in now.findings if finding.step is not None]
    return tuple(known)


def identity(finding: Finding, report: Report) -> tuple[str, str, str]:
    """What makes a finding the same at another revision: numbers in its message do not."""
    return finding.rule, finding.place.file, code(finding, report)
