"""A review for GitHub with suggestions (docs.github.com/rest/pulls/reviews, "Create a review for a pull request")."""

from collections.abc import Sequence
from typing import Any

from advisor.engine.finding import Report
from advisor.report.as_json import dumped
from advisor.report.fingerprint import repository_path
from advisor.report.style import Style
from advisor.report.suggestions import Suggestion, suggestions
from advisor.report.wording import counted

ROOT = "GITHUB_WORKSPACE"


def render(reports: Sequence[Report], _style: Style) -> str:
    """The body of the request; without suggestions it has no comments."""
    found = suggestions(reports)
    body = f"advisor: {counted(len(found), 'suggestion')}"
    return dumped({"event": "COMMENT", "body": body, "comments": [comment(each) for each in found]})


def comment(found: Suggestion) -> dict[str, Any]:
    """One comment; over several lines it also names the first."""
    several = {"start_line": found.first, "start_side": "RIGHT"} if found.last > found.first else {}
    return {
        "path": repository_path(found.file, ROOT),
        **several,
        "line": found.last,
        "side": "RIGHT",
        "body": found.body("suggestion"),
    }
