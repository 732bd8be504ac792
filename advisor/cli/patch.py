"""``advisor check --patch``: asks about each edit, and writes at the end what was accepted."""

import sys
from collections.abc import Sequence

import click

from advisor.cli.options import CheckOptions
from advisor.cli.output import exit_code, say
from advisor.cli.prompt.loop import Prompt, reviewed
from advisor.cli.prompt.proposal import Review
from advisor.documents import read, write_all
from advisor.documents.repository import refuse_links
from advisor.engine.finding import Report
from advisor.engine.fix import Fixed, merged
from advisor.engine.fix_report import report_after
from advisor.engine.options import Options
from advisor.engine.suppression import said_once
from advisor.errors import InputError
from advisor.opening import LoadedRun
from advisor.record import replace
from advisor.report.terminal import own_style
from advisor.session import Session
from advisor.streams import aside, is_terminal

EXCLUDED = {
    "fix": "--fix",
    "unsafe_fixes": "--unsafe-fixes",
    "faster": "--faster",
    "diff": "--diff",
    "output_dir": "--output-dir",
}


def validate_prompt(paths: Sequence[str], options: CheckOptions) -> None:
    """What contradicts a prompt, and whether there is anybody to ask."""
    for option, written in EXCLUDED.items():
        if getattr(options, option):
            raise InputError(f"-p cannot be combined with {written}", remedy=f"pass -p or {written}")
    if "-" in paths:
        raise InputError("-p reads answers from standard input, so it cannot read a config there", remedy="name a file")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise InputError("-p needs an interactive terminal", remedy="use --fix, or --diff to see what it writes")


def prompted(opened: list[LoadedRun], errors: list[InputError], session: Session, asked: CheckOptions) -> int:
    """Asks, writes, and reports; 130 if it was interrupted, with every file as it was."""
    options = [session.options_of(run) for run in opened]
    try:
        reviews = _all_reviewed(opened, options, session)
    except KeyboardInterrupt:
        aside("\ninterrupted: nothing was written")
        return 130
    results = [Fixed(each.opened.run, each.run, each.done, None, each.opened.context) for each in reviews]
    write(results)
    reports = list(said_once(after(result, review) for result, review in zip(results, reviews, strict=True)))
    click.echo()
    say(reports, session, asked.output, detail=asked.detail)
    return exit_code(reports, errors, session, exit_zero=asked.exit_zero)


def _all_reviewed(opened: Sequence[LoadedRun], options: Sequence[Options], session: Session) -> list[Review]:
    """What was accepted of each file; nothing of those that a ``q`` leaves."""
    style = own_style()
    prompt = Prompt(style, session.context)
    reviews = [Review(run, run.run, option) for run, option in zip(opened, options, strict=True)]
    for number, review in enumerate(reviews):
        reviews[number], goes_on = reviewed(review, prompt)
        if not goes_on:
            break
    return reviews


def write(results: Sequence[Fixed]) -> None:
    """All files at once. ``InputError`` where one is no longer what was shown."""
    for result in results:
        for document in result.documents:
            if not document.is_new and read(document.file).raw != document.raw:
                remedy = "nothing was written; run the command again"
                raise InputError("has changed since it was read", document.file, remedy=remedy)
    files = merged(results)
    refuse_links(files)
    write_all(files)
    if files:
        aside(f"\nwrote {', '.join(files)}")


def after(result: Fixed, review: Review) -> Report:
    """What is left to say, with the refused steps off the flowchart."""
    return report_after(result, replace(review.options, ignore=(*review.options.ignore, *review.off)))
