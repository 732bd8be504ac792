"""``advisor gitlab-comment``: what ``comment`` does, with no module of the working directory among Python's."""

import sys

import click

from advisor.cli.group import Telling


@click.command("gitlab-comment", cls=Telling)
@click.argument("report", metavar="REPORT")
@click.argument("review", metavar="REVIEW")
def command(report: str, review: str) -> None:
    """Post a report and suggestions to a merge request of GitLab.

    REPORT as `check --output-format markdown` writes it, REVIEW as `gitlab-review`. Needs ADVISOR_TOKEN (scope api).
    """
    from .comment import main

    sys.exit(main(report, review))
