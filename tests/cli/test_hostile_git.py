"""A repository whose settings name programs for everything that git may run: none of them runs."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main

from .test_changed_since import MODEL, NAMES, QUIET, commit, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
CONFIG = MODEL + "learning_rate: 1e-5\ndatasets: [{path: a/b, type: alpaca}]\n"
PROGRAMS = (
    *("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv", "diff.x.command", "diff.external"),
    *("merge.x.driver", "core.fsmonitor", "core.pager", "pager.diff", "core.sshCommand", "core.gitProxy"),
    *("core.editor", "core.askPass", "credential.helper", "gpg.program", "uploadpack.packObjectsHook"),
    *("remote.origin.uploadpack", "remote.origin.vcs", "core.alternateRefsCommand", "interactive.diffFilter"),
)
WORDS = ("rev-parse", "merge-base", "ls-tree", "ls-files", "cat-file", "diff", "diff-index", "status", "config")
HOOKS = ("post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout", "pre-auto-gc")
Run = Callable[..., Result]


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Where a program that ran leaves its name."""
    (tmp_path / "ran").mkdir()
    return tmp_path / "ran"


def trap(folder: Path, marks: Path, *, settings: str = "config") -> None:
    """Settings of a repository, and attributes, that name a program for everything."""
    path = next(found for found in (folder / ".git", folder) if (found / "HEAD").is_file())

    def touches(name: str) -> str:
        return f"touch {marks}/{path.name}-{name.replace('.', '-')}; cat"

    for name in PROGRAMS:
        git(folder, "config", "--file", str(path / settings), name, touches(name))
    for word in WORDS:
        git(folder, "config", "--file", str(path / settings), f"alias.{word}", f"!{touches('alias')}")
    (path / "traps").mkdir(exist_ok=True)
    for hook in HOOKS:
        script = path / "traps" / hook
        script.write_text(f"#!/bin/sh\n{touches(hook)}\n")
        script.chmod(0o755)
    for name, value in {
        "core.hooksPath": str(path / "traps"),
        "filter.x.required": "true",
        "core.untrackedCache": "true",
        "diff.autoRefreshIndex": "true",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::sh -c touch% {marks}/transport",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "submodule.recurse": "true",
        "status.submoduleSummary": "true",
    }.items():
        git(folder, "config", "--file", str(path / settings), name, value)
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text("* filter=x diff=x merge=x\n")


@pytest.fixture
def repository(tmp_path: Path, marks: Path) -> Path:
    """A checkout with a config that changed, one that is new, one that was renamed and one that was only touched."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in ("changed", "touched", "before"):
        (folder / f"{name}.yaml").write_text(CONFIG.replace("512", str(512 + 64 * len(name))))
    git(folder, "init", "--quiet")
    commit(folder)
    git(folder, "mv", "before.yaml", "renamed.yaml")
    commit(folder)
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (folder / "changed.yaml").write_text(CONFIG + "micro_batch_size: 2\n")
    (folder / "new.yaml").write_text(CONFIG.replace("0.5B", "7B"))
    os.utime(folder / "touched.yaml", (1, 1))
    trap(folder, marks)
    return folder


@pytest.fixture
def run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in (*NAMES, "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, QUIET[name]) if name in QUIET else None

    def run(*arguments: str, folder: Path = repository) -> Result:
        monkeypatch.chdir(folder)
        return CliRunner().invoke(main, ["check", "--isolated", "--output-format", "concise", *arguments])

    return run


def ran(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.iterdir())


def test_the_traps_work(repository: Path, marks: Path):
    """What git itself runs there."""
    command = ["git", "diff", "HEAD~1"]
    subprocess.run(command, cwd=repository, capture_output=True, check=False, env=QUIET)
    assert {".git-core-fsmonitor", ".git-filter-x-process"} & set(ran(marks))


def test_what_changed_is_found_without_them(marks: Path, run: Run):
    done = run("--changed-since", "HEAD~1", ".")
    assert done.exit_code in (0, 1), done.stderr
    found = {line.partition(":")[0].removeprefix("./") for line in done.stdout.splitlines() if "[" in line}
    assert found == {"changed.yaml", "new.yaml", "renamed.yaml"}
    assert ran(marks) == []


def test_a_run_is_compared_without_them(repository: Path, marks: Path, run: Run):
    done = run("--against", "HEAD~1", "--gpus", "1x h200", "--output-format", "github-review=../r.json", ".")
    assert done.exit_code in (0, 1), done.stderr
    said = {line.partition(": ")[0].removeprefix("./"): line for line in done.stdout.splitlines() if "[" not in line}
    assert "new.yaml: new" in said["new.yaml"]
    assert " -> " in said["changed.yaml"] and "of 139" in said["renamed.yaml"] and "new" not in said["touched.yaml"]
    assert ran(marks) == []


def test_settings_that_are_included_are_no_way_round(repository: Path, marks: Path, run: Run):
    trap(repository, marks, settings="more")
    git(repository, "config", "include.path", "more")
    assert run("--changed-since", "HEAD~1", ".").exit_code in (0, 1)
    assert ran(marks) == []


def test_what_a_partial_clone_lacks_is_not_fetched(repository: Path, marks: Path, run: Run):
    done = subprocess.run(
        ["git", "rev-parse", "HEAD~1:changed.yaml"], cwd=repository, capture_output=True, text=True, check=True
    )
    lacking = done.stdout.strip()
    (repository / ".git" / "objects" / lacking[:2] / lacking[2:]).unlink()
    done = run("--against", "HEAD~1", "changed.yaml")
    assert done.exit_code == 2 and "a partial clone must fetch it first" in done.stderr
    assert run("--changed-since", "HEAD~1", ".").exit_code in (0, 1)
    assert ran(marks) == []


def test_a_folder_that_poses_as_a_repository_is_not_asked(repository: Path, marks: Path, run: Run):
    """A clone may bring one: nothing in it is called `.git`."""
    inner = repository / "configs"
    git(repository, "init", "--quiet", "--bare", str(inner))
    git(inner, "config", "--file", str(inner / "config"), "core.bare", "false")
    git(inner, "config", "--file", str(inner / "config"), "core.worktree", str(repository))
    trap(inner, marks)
    (inner / "one.yaml").write_text(CONFIG)
    for folder, path in ((repository, "configs"), (inner, ".")):
        done = run("--changed-since", "HEAD", path, folder=folder)
        assert done.exit_code in (0, 1) and "one.yaml" in done.stdout, done.stderr
        assert run("--against", "HEAD", path, folder=folder).exit_code in (0, 1)
    assert ran(marks) == []


def test_a_submodule_is_compared_without_its_programs(repository: Path, marks: Path, run: Run, tmp_path: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("same", "other"):
        (inner / f"{name}.yaml").write_text(CONFIG)
    git(inner, "init", "--quiet")
    commit(inner)
    shutil.move(inner, repository / "module")
    (repository / ".gitattributes").unlink()
    plain = repository / ".git" / "config"
    trapped = plain.read_text()
    plain.write_text("[core]\n\trepositoryformatversion = 0\n")
    (repository / ".git" / "info" / "attributes").unlink()
    git(repository, "add", "module")
    git(repository, "commit", "--quiet", "-m", "module")
    plain.write_text(trapped)
    (repository / "module" / ".gitattributes").write_text("* filter=x diff=x\n")
    (repository / "module" / "other.yaml").write_text(CONFIG + "micro_batch_size: 2\n")
    trap(repository / "module", marks)
    done = run("--changed-since", "HEAD", "module/same.yaml", "module/other.yaml", ".")
    assert done.exit_code in (0, 1), done.stderr
    assert "module/other.yaml" in done.stdout and "module/same.yaml" not in done.stdout
    assert ran(marks) == []


def test_git_is_none_of_the_folder_that_is_looked_at(
    repository: Path, marks: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    (repository / "git").write_text(f"#!/bin/sh\ntouch {marks}/git\n")
    (repository / "git").chmod(0o755)
    for relative in (".", ""):
        monkeypatch.setenv("PATH", f"{relative}:{os.environ['PATH']}")
        assert run("--changed-since", "HEAD", ".").exit_code in (0, 1)
    assert ran(marks) == []


def test_a_repository_whose_files_lie_elsewhere_is_an_error(repository: Path, run: Run):
    git(repository, "config", "core.worktree", str(repository.parent))
    done = run("--changed-since", "HEAD", ".")
    assert done.exit_code == 2 and "its files lie elsewhere" in done.stderr


def test_ends_of_lines_are_no_change(tmp_path: Path, run: Run):
    """As git on Windows writes them (core.autocrlf)."""
    folder = tmp_path / "windows"
    folder.mkdir()
    (folder / "one.yaml").write_text(CONFIG)
    git(folder, "init", "--quiet")
    commit(folder)
    (folder / "one.yaml").write_bytes(CONFIG.replace("\n", "\r\n").encode())
    assert "nothing to check" in run("--changed-since", "HEAD", ".", folder=folder).stderr
