"""Comments on a merge request, sent to a server that answers as GitLab does and writes down what it is asked."""

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jsonschema
import pytest
from advisor.plugins.gitlab.comment import main

from ...review_requests import GITLAB_DISCUSSION, GITLAB_NOTE, GITLAB_NOTE_UPDATE

Asked = list[tuple[str, str, Any]]
ONE = {
    "body": "<!-- axolotl-advisor 0123456789abcdef -->\nwords\n\n```suggestion:-0+0\na: 1\n```",
    "position": {"position_type": "text", "new_path": "run.yaml", "old_path": "run.yaml", "new_line": 3},
}


class GitLab(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: Asked = []
        self.notes: list[dict[str, Any]] = []
        self.code = 200


class Handler(BaseHTTPRequestHandler):
    server: GitLab

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert self.headers["PRIVATE-TOKEN"] == "secret"
        path = self.path.removeprefix("/api/v4/projects/5/merge_requests/9")
        self.server.asked.append((self.command, path, json.loads(body) if body else None))
        self.send_response(self.server.code)
        self.end_headers()
        page = self.server.notes if path.endswith("&page=1") else []
        self.wfile.write(json.dumps(page if self.command == "GET" else {}).encode())

    do_GET = do_POST = do_PUT = answer  # noqa: N815 (the library's names)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLab]:
    server = GitLab()
    Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {
        "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4",
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "9",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "aaa",
        "CI_COMMIT_SHA": "bbb",
        "ADVISOR_TOKEN": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "report.md").write_text("### advisor\n")
    (tmp_path / "review.json").write_text(json.dumps([ONE]))
    return str(tmp_path / "report.md"), str(tmp_path / "review.json")


def test_a_first_push_makes_a_note_and_a_discussion(gitlab: GitLab, files: tuple[str, str]):
    assert main(*files) == 0
    assert [(method, path) for method, path, _ in gitlab.asked] == [
        ("GET", "/notes?per_page=100&page=1"),
        ("POST", "/notes"),
        ("POST", "/discussions"),
    ]
    assert gitlab.asked[1][2] == {"body": "<!-- axolotl-advisor -->\n### advisor\n"}
    discussion = gitlab.asked[2][2]
    jsonschema.Draft202012Validator(GITLAB_DISCUSSION).validate(discussion)
    shas = {name: discussion["position"][name] for name in ("base_sha", "start_sha", "head_sha")}
    assert shas == {"base_sha": "aaa", "start_sha": "aaa", "head_sha": "bbb"}


def test_a_second_push_renews_the_note_and_repeats_no_suggestion(gitlab: GitLab, files: tuple[str, str]):
    gitlab.notes = [{"id": 4, "body": "hello"}, {"id": 7, "body": "<!-- axolotl-advisor -->\nold"}, {"id": 8} | ONE]
    assert main(*files) == 0
    assert [(method, path) for method, path, _ in gitlab.asked[2:]] == [("PUT", "/notes/7")]


def test_notes_hold_what_gitlab_publishes_and_no_more(gitlab: GitLab, files: tuple[str, str]):
    Path(files[0]).write_text("é" * 2_000_000)
    assert main(*files) == 0
    gitlab.notes = [{"id": 7, "body": "<!-- axolotl-advisor -->\nold"}, {"id": 8} | ONE]
    assert main(*files) == 0
    sent = {method: body for method, path, body in gitlab.asked if path.startswith("/notes") and body}
    jsonschema.Draft202012Validator(GITLAB_NOTE).validate(sent["POST"])
    jsonschema.Draft202012Validator(GITLAB_NOTE_UPDATE).validate(sent["PUT"])


@pytest.mark.parametrize("wrong", [{}, {"body": ""}, {"body": 7}, {"body": "words", "text": "more"}])
def test_a_note_that_gitlab_does_not_know_is_told_apart(wrong: dict[str, Any]):
    for shape in (GITLAB_NOTE, GITLAB_NOTE_UPDATE):
        assert not jsonschema.Draft202012Validator(shape).is_valid(wrong)


def test_what_goes_wrong_is_a_line_in_the_log(
    gitlab: GitLab, files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    gitlab.code = 403
    assert main(*files) == 0
    assert "no comment: HTTP Error 403" in capsys.readouterr().out
    monkeypatch.delenv("ADVISOR_TOKEN")
    assert main(*files) == 0
    assert "'ADVISOR_TOKEN' is not set" in capsys.readouterr().out


LIES = "open({mark!r}, 'w')\nraise SystemExit(3)\n"


@pytest.fixture
def checkout(tmp_path: Path, files: tuple[str, str]) -> Path:
    """A merge request's files, some of which have names of modules."""
    folder = tmp_path / "checkout"
    for name in ("json", "urllib", "advisor", "click", "yaml", "sitecustomize"):
        (folder / name).mkdir(parents=True)
        for file in (folder / name / "__init__.py", folder / f"{name}.py"):
            file.write_text(LIES.format(mark=str(tmp_path / "ran")))
    return folder


def test_the_command_runs_no_module_of_the_checkout(gitlab: GitLab, files: tuple[str, str], checkout: Path):
    command = [str(Path(sys.executable).with_name("advisor")), "gitlab-comment", *files]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [method for method, _, _ in gitlab.asked] == ["GET", "POST", "POST"]
    assert not (checkout.parent / "ran").exists()


def test_the_module_still_runs_and_names_the_command(gitlab: GitLab, files: tuple[str, str], tmp_path: Path):
    command = [sys.executable, "-m", "advisor.plugins.gitlab.comment", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "`advisor gitlab-comment`" in done.stderr
    assert [method for method, _, _ in gitlab.asked] == ["GET", "POST", "POST"]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("how", ["file", "folder"])
def test_what_lies_behind_a_link_of_the_checkout_is_not_published(
    gitlab: GitLab,
    files: tuple[str, str],
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    which: int,
    how: str,
):
    (checkout / ".git").mkdir()
    monkeypatch.chdir(checkout)
    named = list(files)
    if how == "file":
        Path("out").symlink_to(files[which])
        named[which] = "out"
    else:
        Path("out").symlink_to(Path(files[which]).parent)
        named[which] = f"out/{Path(files[which]).name}"
    assert main(*named) == 0
    assert gitlab.asked == [] and f"{named[which]} is a link" in capsys.readouterr().out
