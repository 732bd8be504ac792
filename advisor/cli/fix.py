"""``advisor check --fix`` and ``--diff``."""

from pathlib import Path

import click

from advisor.cli.options import CheckOptions
from advisor.cli.output import exit_code, say
from advisor.cli.output_dir import moved_to
from advisor.documents import write_all
from advisor.documents.repository import refuse_links
from advisor.engine.check import check_run
from advisor.engine.fix import Fixed, fixed, merged
from advisor.engine.fix_report import report_after
from advisor.engine.options import Options
from advisor.engine.shared_json import shared_out
from advisor.engine.suppression import said_once
from advisor.errors import InputError
from advisor.opening import LoadedRun
from advisor.progress import each, shown
from advisor.record import replace
from advisor.run.deepspeed.locate import namers
from advisor.session import Session


def fix_or_diff(opened: list[LoadedRun], errors: list[InputError], session: Session, asked: CheckOptions) -> int:
    """``--fix`` and ``--diff``."""
    options = [replace(session.options_of(run), faster=asked.faster) for run in opened]
    moved = moved_to(asked.output_dir, opened) if asked.output_dir else []
    opened = [each_run.opened for each_run in moved] or opened
    with shown():
        pairs = each(list(zip(opened, options, strict=True)), lambda pair: pair[0].run.config.file)
        results = [fixed(run, option, unsafe=asked.unsafe_fixes) for run, option in pairs]
    if not moved:
        results = shared_out(results, options, unsafe=asked.unsafe_fixes)
    if asked.diff:
        return _show_diff(results, options, errors, session, exit_zero=asked.exit_zero)
    stdin = any(run.run.config.file == "<stdin>" for run in opened)
    files = merged(results)
    if stdin:
        click.echo(results[0].run.config.patched(), nl=False) if results else None
        files.pop("<stdin>", None)
    if moved:
        files = {document.file: document.raw for run in moved for document in run.documents} | files
        for file in files:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
    refuse_links(files)
    write_all(files)
    namers.cache_clear()
    # Where safe steps fall short, the plan in the report shows the others.
    every = (report_after(result, option) for result, option in zip(results, options, strict=True))
    reports = list(said_once(every))
    say(reports, session, asked.output, detail=asked.detail, to_stderr=stdin)
    return exit_code(reports, errors, session, exit_zero=asked.exit_zero)


def _show_diff(
    results: list[Fixed], options: list[Options], errors: list[InputError], session: Session, *, exit_zero: bool
) -> int:
    """The diffs on standard output; 1 if one of them answers a finding that counts."""
    text = "".join(result.diff() for result in results)
    click.echo(text, nl=False)
    if any(not error.note for error in errors):
        return 2
    befores = [LoadedRun(result.before) for result in results]
    reports = [check_run(before, option) for before, option in zip(befores, options, strict=True)]
    answered = text and any(finding for report in reports for finding in report.findings)
    code = exit_code(reports, errors, session, exit_zero=exit_zero)
    return 0 if exit_zero else max(code, 1 if answered else 0)
