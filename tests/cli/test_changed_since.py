"""``advisor check --changed-since``: what git says was touched, in a real repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\n"
ZERO = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n'
NAMES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
QUIET = {name: value for name, value in os.environ.items() if name not in NAMES} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, env=QUIET)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "next")


def check(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "advisor", "check", "--isolated", *arguments]
    command += ["--select", "unknown-hardware,deepspeed-ignored-key,missing-deepspeed-file"]
    command += [] if "--output-format" in arguments else ["--output-format", "concise"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=QUIET | environment)


def files(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The files that something was said of."""
    assert done.returncode in {0, 1}, done.stderr
    lines = done.stdout.replace("\\", "/").splitlines()
    return sorted({line.split(":")[0].removeprefix("./") for line in lines if ": note[" in line or ": error[" in line})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "configs").mkdir(parents=True)
    for name in ("one", "two"):
        (folder / "configs" / f"{name}.yaml").write_text(MODEL)
    (folder / "zero.json").write_text(ZERO)
    (folder / "configs" / "sharded.yaml").write_text(MODEL + "deepspeed: zero.json\n")
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def test_only_a_changed_an_added_and_an_untracked_config_are_checked(repository: Path):
    (repository / "configs" / "one.yaml").write_text(MODEL + "micro_batch_size: 2\n")
    commit(repository)
    (repository / "configs" / "new é.yaml").write_text(MODEL)
    assert files(check(repository, "--changed-since", "HEAD~1", ".")) == ["configs/new é.yaml", "configs/one.yaml"]
    assert files(check(repository, "--changed-since", "HEAD", "configs")) == ["configs/new é.yaml"]


def test_a_changed_json_brings_the_yamls_that_name_it(repository: Path):
    (repository / "zero.json").write_text(ZERO.replace("2}", "3}"))
    assert files(check(repository, "--changed-since", "HEAD", ".")) == ["configs/sharded.yaml"]
    assert files(check(repository, "--changed-since", "HEAD", "configs/sharded.yaml")) == ["configs/sharded.yaml"]


@pytest.mark.slow
def test_a_json_next_to_the_yaml_is_followed_from_another_folder(repository: Path):
    (repository / "configs" / "beside.json").write_text(ZERO)
    (repository / "configs" / "two.yaml").write_text(MODEL + "deepspeed: beside.json\n")
    commit(repository)
    (repository / "configs" / "beside.json").write_text(ZERO.replace("2}", "1}"))
    done = check(repository.parent, "--changed-since", "HEAD", "repository")
    assert files(done) == ["repository/configs/two.yaml"]


@pytest.mark.slow
def test_a_deleted_json_brings_the_yaml_that_lacks_it(repository: Path):
    (repository / "zero.json").unlink()
    done = check(repository, "--changed-since", "HEAD", ".")
    assert done.returncode == 1 and files(done) == ["configs/sharded.yaml"]
    assert "missing-deepspeed-file" in done.stdout


@pytest.mark.slow
def test_a_renamed_config_is_checked_and_a_deleted_one_is_no_error(repository: Path):
    git(repository, "mv", "configs/one.yaml", "configs/renamed.yaml")
    git(repository, "rm", "--quiet", "configs/two.yaml")
    commit(repository)
    named = ("configs/renamed.yaml", "configs/one.yaml", "configs/two.yaml", "configs/sharded.yaml")
    assert files(check(repository, "--changed-since", "HEAD~1", *named)) == ["configs/renamed.yaml"]


@pytest.mark.slow
def test_a_folder_that_is_gone_is_no_error_and_a_path_that_never_was_is(repository: Path):
    shutil.rmtree(repository / "configs")
    assert check(repository, "--changed-since", "HEAD", "configs").returncode == 0
    done = check(repository, "--changed-since", "HEAD", "confgis")
    assert done.returncode == 2 and "no such file" in done.stderr


@pytest.mark.slow
def test_what_others_did_meanwhile_is_not_this_branchs_change(repository: Path):
    git(repository, "checkout", "--quiet", "-b", "mine")
    (repository / "configs" / "one.yaml").write_text(MODEL + "micro_batch_size: 2\n")
    commit(repository)
    git(repository, "checkout", "--quiet", "main")
    (repository / "configs" / "two.yaml").write_text(MODEL + "micro_batch_size: 2\n")
    commit(repository)
    git(repository, "checkout", "--quiet", "mine")
    assert files(check(repository, "--changed-since", "main", ".")) == ["configs/one.yaml"]


@pytest.mark.slow
def test_nothing_changed_is_a_line_and_success(repository: Path):
    done = check(repository, "--changed-since", "HEAD", "--output-format", "full", ".")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "nothing to check: no config here has changed since HEAD\n"


@pytest.mark.slow
def test_a_file_that_cannot_be_read_counts_only_if_it_changed(repository: Path):
    (repository / "configs" / "two.yaml").write_text("base_model: [\n")
    commit(repository)
    assert check(repository, "--changed-since", "HEAD", ".").returncode == 0
    assert check(repository, "--changed-since", "HEAD~1", ".").returncode == 2


@pytest.mark.slow
def test_a_link_is_followed_to_the_file_that_changed(repository: Path):
    (repository / "link.yaml").symlink_to("configs/one.yaml")
    commit(repository)
    (repository / "configs" / "one.yaml").write_text(MODEL + "micro_batch_size: 2\n")
    assert files(check(repository, "--changed-since", "HEAD", "link.yaml")) == ["link.yaml"]


@pytest.mark.slow
def test_a_hooks_environment_does_not_hide_the_repository(repository: Path):
    (repository / "configs" / "one.yaml").write_text(MODEL + "micro_batch_size: 2\n")
    done = check(repository.parent, "--changed-since", "HEAD", "repository", GIT_DIR=".git", GIT_WORK_TREE="/")
    assert files(done) == ["repository/configs/one.yaml"]


@pytest.mark.slow
def test_ignored_files_do_not_count(repository: Path):
    (repository / ".gitignore").write_text("scratch.yaml\n")
    commit(repository)
    (repository / "scratch.yaml").write_text(MODEL)
    assert "nothing to check" in check(repository, "--changed-since", "HEAD", ".").stderr


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["no-such-branch", "--output=x", "HEAD..HEAD", ""])
def test_an_unknown_revision_is_one_clear_error(repository: Path, revision: str):
    done = check(repository, f"--changed-since={revision}", ".")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"error: --changed-since: unknown revision `{revision}`")
    assert not (repository / "x").exists()


@pytest.mark.slow
def test_outside_of_a_repository_is_one_clear_error(tmp_path: Path):
    (tmp_path / "one.yaml").write_text(MODEL)
    done = check(tmp_path, "--changed-since", "HEAD", "one.yaml", GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --changed-since: not in a git repository\n  --> one.yaml\n")


@pytest.mark.slow
def test_without_git_is_one_clear_error(repository: Path):
    done = check(repository, "--changed-since", "HEAD", ".", PATH=str(repository))
    assert done.returncode == 2
    assert done.stderr.startswith("error: git cannot be run")


@pytest.mark.slow
def test_standard_input_is_one_clear_error(repository: Path):
    done = check(repository, "--changed-since", "HEAD", "-")
    assert done.returncode == 2 and "cannot be combined with `-`" in done.stderr


@pytest.mark.slow
def test_a_file_that_was_only_touched_does_not_count(repository: Path):
    os.utime(repository / "configs" / "one.yaml", (1, 1))
    assert "nothing to check" in check(repository, "--changed-since", "HEAD", ".").stderr


def test_a_program_that_the_repository_names_is_not_run(repository: Path):
    for setting in ("core.fsmonitor", "diff.external"):
        git(repository, "config", setting, f"touch {repository.parent}/ran; false")
    (repository / "configs" / "one.yaml").write_text(MODEL + "micro_batch_size: 2\n")
    assert files(check(repository, "--changed-since", "HEAD", ".")) == ["configs/one.yaml"]
    assert not (repository.parent / "ran").exists()
