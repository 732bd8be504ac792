"""Comments that keep findings quiet, and a warning for those that keep nothing quiet."""

from collections.abc import Sequence

from advisor.documents import Directive
from advisor.finding import Finding, Place
from advisor.run import Run


def suppressed(run: Run, findings: Sequence[Finding], *, tell_unused: bool) -> list[Finding]:
    """Findings that no comment keeps quiet, and a warning for each comment that keeps nothing quiet."""
    ignores = [d for d in run.config.directives if d.name in {"ignore", "file-ignore"}]
    used: set[Directive] = set()
    kept: list[Finding] = []
    for finding in findings:
        hits = [directive for directive in ignores if silences(directive, finding, run)]
        used.update(hits)
        if not hits:
            kept.append(finding)
    unused = [unused_finding(run, directive) for directive in ignores if directive not in used]
    malformed = [malformed_finding(run, d) for d in run.config.directives if d.name == "malformed"]
    return [*kept, *(unused if tell_unused else []), *malformed]


def silences(directive: Directive, finding: Finding, run: Run) -> bool:
    """Whether a comment speaks of this finding: by its rule, and unless it is for the file, by its line."""
    if finding.rule not in {part.strip() for part in directive.argument.split(",")}:
        return False
    if directive.name == "file-ignore":
        return True
    line = directive.line + 1 if directive.own_line else directive.line
    return finding.place.file == run.config.file and finding.place.line == line


def unused_finding(run: Run, directive: Directive) -> Finding:
    """An ignore that matches nothing."""
    written = f"# advisor: {directive.name}[{directive.argument}]"
    return directive_finding(run, directive, f"`{written}` matches no finding; remove it")


def malformed_finding(run: Run, directive: Directive) -> Finding:
    """A comment to the advisor that it does not understand."""
    forms = "`gpus=...`, `ignore[rule] reason` or `file-ignore[rule] reason`"
    return directive_finding(run, directive, f"`# advisor: {directive.argument}` is not understood; write {forms}")


def directive_finding(run: Run, directive: Directive, message: str) -> Finding:
    """A warning at a comment."""
    place = Place(run.config.file, directive.line, 1, directive.line, 2)
    return Finding("unused-ignore", "warning", message, place, title="Unused ignore")
