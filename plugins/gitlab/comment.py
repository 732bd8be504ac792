"""The report and suggestions on a merge request: ``advisor gitlab-comment REPORT.md REVIEW.json``.

``python -m advisor.plugins.gitlab.comment`` does the same, but Python then looks for modules in the working directory
first, so that a checkout with a ``json.py`` runs it, with the token: the command is the safe way.

Runs in a merge request pipeline. ``ADVISOR_TOKEN`` is an access token with the scope ``api``: a job's own may not write
notes. What goes wrong here is a line in the log: the verdict is the exit code of the check.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from advisor.documents.repository import leads_out

MARKER = "<!-- axolotl-advisor -->"
MARK = re.compile(r"<!-- axolotl-advisor \w+ -->")
MOST = 900_000
"""GitLab takes a million characters."""
PAGE = 100
SHAS = {
    "base_sha": "CI_MERGE_REQUEST_DIFF_BASE_SHA",
    "start_sha": "CI_MERGE_REQUEST_DIFF_BASE_SHA",
    "head_sha": "CI_COMMIT_SHA",
}


class _MergeRequest:
    """One merge request, through GitLab's API."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        project, number = environment["CI_PROJECT_ID"], environment["CI_MERGE_REQUEST_IID"]
        self.url = f"{environment['CI_API_V4_URL']}/projects/{project}/merge_requests/{number}"
        self.token = environment["ADVISOR_TOKEN"]
        self.shas = {name: environment[variable] for name, variable in SHAS.items()}

    def asked(self, method: str, path: str, body: object = None) -> Any:
        """The answer to one request. ``URLError`` where it fails."""
        headers = {"PRIVATE-TOKEN": self.token, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data, headers, method=method), timeout=60) as answer:
            return json.load(answer)

    def notes(self) -> Iterator[dict[str, Any]]:
        """All notes that are there, those of discussions too."""
        page = 1
        while found := self.asked("GET", f"/notes?per_page={PAGE}&page={page}"):
            yield from found
            page += 1

    def say(self, report: str, notes: list[dict[str, Any]]) -> None:
        """The report as a note, or over the note of the push before."""
        body = {"body": f"{MARKER}\n{report}"[:MOST]}
        old = next((note["id"] for note in notes if note["body"].startswith(MARKER)), None)
        self.asked("POST", "/notes", body) if old is None else self.asked("PUT", f"/notes/{old}", body)

    def suggest(self, review: list[dict[str, Any]], notes: list[dict[str, Any]]) -> None:
        """The suggestions that no push before has made."""
        made = {mark for note in notes for mark in MARK.findall(note["body"])}
        for each in review:
            if not made & set(MARK.findall(each["body"])):
                self.asked("POST", "/discussions", each | {"position": each["position"] | self.shas})


def content(path: str) -> str:
    """A file of the job. ``ValueError`` for a link of the checkout: it would publish what lies behind it."""
    if os.path.islink(path) or leads_out(path):
        raise ValueError(f"{path} is a link")
    return Path(path).read_text(encoding="utf-8")


def main(report: str, review: str) -> int:
    """Always 0: a comment that cannot be made is no failure of the check."""
    try:
        said, suggested = content(report), json.loads(content(review))
        request = _MergeRequest(os.environ)
        notes = list(request.notes())
        request.say(said, notes)
        request.suggest(suggested, notes)
    except KeyError as missing:
        print(f"advisor: no comment: {missing} is not set; it needs a merge request pipeline and ADVISOR_TOKEN")
    except (URLError, OSError, ValueError) as error:
        print(f"advisor: no comment: {error}")
    return 0


if __name__ == "__main__":
    print("advisor: `advisor gitlab-comment` does the same and runs no module of the checkout", file=sys.stderr)
    sys.exit(main(*sys.argv[1:3]))
