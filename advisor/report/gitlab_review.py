"""Discussions for GitLab with suggestions (docs.gitlab.com/api/discussions, "Create a new thread", merge requests).

The commits of their positions are known to the job alone: ``plugins/gitlab`` adds them.
"""

from collections.abc import Sequence
from typing import Any

from advisor.engine.finding import Report
from advisor.report.as_json import dumped
from advisor.report.fingerprint import repository_path
from advisor.report.style import Style
from advisor.report.suggestions import Suggestion, suggestions

ROOT = "CI_PROJECT_DIR"


def render(reports: Sequence[Report], _style: Style) -> str:
    """A list of discussions."""
    return dumped([discussion(each) for each in suggestions(reports)])


def discussion(found: Suggestion) -> dict[str, Any]:
    """One; it stands at a line of the diff and says how many lines above and below it replaces."""
    path = repository_path(found.file, ROOT)
    language = f"suggestion:-{found.anchor - found.first}+{found.last - found.anchor}"
    position = {"position_type": "text", "new_path": path, "old_path": path, "new_line": found.anchor}
    return {"body": found.body(language), "position": position}
