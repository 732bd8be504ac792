"""``advisor check --fix`` and ``--diff``."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from advisor.commands.asked import Asked, options_for
from advisor.commands.check import exit_code
from advisor.commands.output import say
from advisor.documents import write_all
from advisor.errors import InputError
from advisor.finding import Report
from advisor.fix import Fixed, fixed, merged, report_after
from advisor.judge import check_run
from advisor.project import Opened


def fix_or_diff(opened: list[Opened], errors: list[InputError], asked: Asked, given: dict[str, Any]) -> int:
    """``--fix`` and ``--diff``."""
    unsafe = bool(given["unsafe_fixes"])
    if given["output_dir"]:
        opened = [moved(run, given["output_dir"]) for run in opened]
    results = [fixed(run, options_for(run, asked), unsafe=unsafe) for run in opened]
    if given["diff"]:
        return show_diff(results, errors, asked, given)
    stdin = any(run.run.config.file == "<stdin>" for run in opened)
    files = merged(results)
    if stdin:
        click.echo(results[0].run.config.patched(), nl=False) if results else None
        files.pop("<stdin>", None)
    if given["output_dir"]:
        Path(given["output_dir"]).mkdir(parents=True, exist_ok=True)
        files |= {run.run.config.file: run.run.config.raw for run in opened if run.run.config.file not in files}
    write_all(files)
    reports = [after_fix(result, asked) for result in results]
    say(reports, asked, given, to_stderr=stdin)
    return exit_code(reports, errors, asked, given)


def moved(opened: Opened, folder: str) -> Opened:
    """The run as if its YAML lay in ``folder``, so that what is written lands there."""
    run = opened.run
    file = os.path.join(folder, os.path.basename(run.config.file))  # noqa: PTH118, PTH119
    config = replace(run.config, file=file)
    section = run.deepspeed
    if section is not None and section.prefix:
        section = replace(section, document=config)
    return Opened(replace(run, config=config, deepspeed=section, deepspeed_editable=False), opened.unknown_model)


def after_fix(result: Fixed, asked: Asked) -> Report:
    """The report on what was written; where safe steps fall short, its plan shows the others."""
    return report_after(result, options_for(Opened(result.run), asked))


def show_diff(results: list[Fixed], errors: list[InputError], asked: Asked, given: dict[str, Any]) -> int:
    """The diffs on standard output; 1 if one of them answers a finding that counts."""
    text = "".join(result.diff() for result in results)
    click.echo(text, nl=False)
    if errors:
        return 2
    reports = [check_run(Opened(result.before), options_for(Opened(result.before), asked)) for result in results]
    answered = text and any(finding for report in reports for finding in report.findings)
    code = exit_code(reports, errors, asked, given)
    return 0 if given["exit_zero"] else max(code, 1 if answered else 0)
