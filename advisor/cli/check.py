"""``advisor check``: 0 clean or all fixed, 1 findings, 2 could not run."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from advisor.cli.inputs import nothing, opened_runs, opening, tell
from advisor.cli.options import Asked, asked_of, options_for, settings_for
from advisor.cli.output import say, targets
from advisor.engine.check import check_run
from advisor.engine.finding import LEVELS, Report
from advisor.engine.repeats import said_once
from advisor.errors import InputError
from advisor.opening import Opened
from advisor.progress import shown

if TYPE_CHECKING:
    from advisor.cli.changed_since import Changed


def check_command(paths: Sequence[str], **given: Any) -> int:
    """``advisor check``: 0 clean or all fixed, 1 findings, 2 could not run."""
    settings = settings_for(paths, given)
    asked = asked_of(given, settings)
    validate(paths, given)
    targets(asked.formats, given["output"])
    changed = changes(paths, given)
    if given["patch"]:
        from advisor.cli.patch import prompted

        errors, opened = opened_runs(paths, asked, changed)
        return prompted(opened, errors, asked, given)
    if given["fix"] or given["diff"]:
        from advisor.cli.fix import fix_or_diff

        errors, opened = opened_runs(paths, asked, changed)
        return fix_or_diff(opened, errors, asked, given)
    with shown():
        errors, reports = judged(opening(paths, asked, changed), asked)
    tell(errors)
    if not errors and not reports:
        click.echo(nothing(changed), err=True)
    say(reports, asked, given)
    return exit_code(reports, errors, asked, given)


def judged(found: Iterable[Opened | InputError], asked: Asked) -> tuple[list[InputError], list[Report]]:
    """The reports of the runs, each let go once it is judged; what is wrong with one keeps none of the others."""
    errors: list[InputError] = []
    reports: list[Report] = []
    for run in found:
        try:
            if isinstance(run, InputError):
                raise run
            reports.append(check_run(run, options_for(run, asked)))
        except InputError as error:
            errors.append(error)
    return errors, said_once(reports)


def changes(paths: Sequence[str], given: dict[str, Any]) -> "Changed | None":
    """What ``--changed-since`` leaves of the paths; None for all of them."""
    if given["changed_since"] is None:
        return None
    from advisor.cli.changed_since import changed_since

    return changed_since(given["changed_since"], paths)


def validate(paths: Sequence[str], given: dict[str, Any]) -> None:
    """Options that contradict each other."""
    if given["patch"]:
        from advisor.cli.patch import validate_prompt

        validate_prompt(paths, given)
    if given["unsafe_fixes"] and not (given["fix"] or given["diff"]):
        raise InputError("--unsafe-fixes does nothing alone", remedy="add --fix or --diff")
    if given["output_dir"] and not given["fix"]:
        raise InputError("--output-dir does nothing alone", remedy="add --fix")


def exit_code(reports: Sequence[Report], errors: Sequence[InputError], asked: Asked, given: dict[str, Any]) -> int:
    """2 beats 1 beats 0."""
    if errors:
        return 2
    counted = LEVELS[: LEVELS.index(asked.fail_on) + 1]
    found = any(finding.level in counted for report in reports for finding in report.findings)
    return 1 if found and not given["exit_zero"] else 0
