"""``check --against``: each run next to what it was where the branch left another revision, as git knows it."""

import os
import re
from collections import Counter
from collections.abc import Sequence

from advisor.cli.changed_since import base_in, git, top_of
from advisor.cli.options import CheckOptions
from advisor.documents import parse
from advisor.engine.finding import OF_HOST, Against, Finding, Report
from advisor.errors import InputError
from advisor.opening import deepspeed_candidates, open_json
from advisor.record import record, replace
from advisor.report.fingerprint import code
from advisor.session import Examined, Session, examine, examined
from advisor.util import Buffers, regex

OPTION = "--against"
HUNK = regex(r"^@@ -\S+ \+(\d+)(?:,\d+)? @@", re.MULTILINE)


def validate_against(paths: Sequence[str], options: CheckOptions) -> None:
    """Options with which it has no meaning are an ``InputError``."""
    for asked, name in ((options.fix, "--fix"), (options.diff, "--diff"), (options.patch, "-p"), ("-" in paths, "-")):
        if asked:
            raise InputError(f"{OPTION} compares and cannot be combined with `{name}`", remedy="give one of the two")


@record(eq=False)
class Base:
    """The commit of one repository that is compared with."""

    revision: str
    top: str
    commit: str
    renamed: dict[str, str]
    """Files that had another name there: old names by new ones, from the top."""

    def text(self, path: str) -> bytes | None:
        """A file as it was; None where it was not there."""
        name = self.name(path)
        done = git(self.top, "cat-file", "blob", f"{self.commit}:{self.renamed.get(name, name)}")
        return done.stdout if done.returncode == 0 else None

    def name(self, path: str) -> str:
        """A path from the top, as git writes it."""
        folder, name = os.path.split(os.path.abspath(path))
        return os.path.relpath(os.path.join(os.path.realpath(folder), name), self.top).replace(os.sep, "/")

    def lines(self, path: str) -> tuple[frozenset[int], frozenset[int]]:
        """The lines of a file that were changed or added, and those that a diff shows with them."""
        name = self.name(path)
        old = self.renamed.get(name, name)
        done = git(self.top, "diff", "--no-ext-diff", "--no-color", "-M", self.commit, "--", *{old, name})
        return diffed_lines(done.stdout.decode(errors="replace"))


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
    commit = base_in(top, revision, OPTION)
    done = git(top, "diff", "--name-status", "-M", "--diff-filter=R", "--no-ext-diff", "-z", commit)
    fields = [os.fsdecode(part) for part in done.stdout.split(b"\0")]
    return Base(revision, top, commit, dict(zip(fields[2::3], fields[1::3], strict=False)))


def compared(found: Examined, session: Session, base: Base) -> Report:
    """The report, with what was there before and does not count set apart."""
    then = report_at(found, session, base)
    known = known_findings(found.report, then) if then else ()
    kept = tuple(finding for finding in found.report.findings if all(finding is not each for each in known))
    lines = {file: base.lines(file) for file in found.report.texts}
    against = Against(
        base.revision,
        then,
        known,
        {file: touched for file, (touched, _) in lines.items()},
        {file: shown for file, (_, shown) in lines.items()},
    )
    return replace(found.report, findings=kept, against=against)


def report_at(found: Examined, session: Session, base: Base) -> Report | None:
    """What was said of the config then, on today's hardware; None where it was not there or cannot be read."""
    run = found.run
    text = base.text(run.config.file)
    if text is None:
        return None
    try:
        if run.is_json_alone:
            return examined(open_json(parse(text, run.config.file, "json"), session.context), session).report
        config = parse(text, run.config.file, "yaml")
        context = replace(session.context, buffers=jsons_at(config.get("deepspeed"), run.config.file, base))
        return examine(config, replace(session, context=context), hardware=run.hardware, speed=False).report
    except InputError:
        return None


def jsons_at(named: object, file: str, base: Base) -> Buffers:
    """The DeepSpeed JSON that a YAML named then, as it was."""
    buffers = Buffers()
    if isinstance(named, str) and named:
        for candidate in deepspeed_candidates(parse(b"", file, "yaml"), named):
            text = base.text(candidate)
            if text is not None:
                buffers[os.path.abspath(candidate)] = text.decode(errors="replace")
    return buffers


def known_findings(now: Report, then: Report) -> tuple[Finding, ...]:
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
