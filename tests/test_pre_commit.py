"""The hooks, run by the real pre-commit on a repository made for the test."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
SHIPPED = (
    ".pre-commit-hooks.yaml",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "advisor",
    "rules",
    "plugins",
    "sample_configs",
)
CONFIG = """\
# advisor: gpus=1x a100-80gb
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
bf16: true
sequence_len: 2048
micro_batch_size: {rows}
gradient_accumulation_steps: {accumulated}
optimizer: adamw_torch_fused
learning_rate: 0.0002
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
"""
FITS = CONFIG.format(rows=1, accumulated=8)
TOO_LARGE = CONFIG.format(rows=64, accumulated=1)
OTHERS = {
    "compose.yaml": "services:\n  web:\n    image: nginx\n",
    "two.yaml": "a: 1\n---\nb: 2\n",
    "tags.yml": "key: !vault |\n  abc\n",
    "broken.yaml": "a: [1\n",
    "merge.yaml": "models:\n  - model: a/b\nmerge_method: linear\nbase_model: a/c\ndtype: float16\n",
    "package.json": '{"name": "x"}\n',
    "tsconfig.json": '{"compilerOptions": {}} // comment\n',
    "notes.txt": "base_model: [\n",
}
Commit = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="needs pre-commit"),
]


def git(folder: Path, *arguments: str) -> str:
    """One git command, with no settings of the machine."""
    named = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", *named, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=clean()).stdout


def clean(**more: str) -> dict[str, str]:
    """The environment without git's and the advisor's own variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "ADVISOR_"))}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | more


def repository(folder: Path, files: dict[str, str]) -> Path:
    """A git repository with these files committed."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def pre_commit(folder: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The real pre-commit, with its cache in ``home``, and the ``advisor`` of this interpreter first in PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env=clean(PRE_COMMIT_HOME=str(home), PATH=path, NO_COLOR="1"),
    )


def local_hooks() -> dict[str, object]:
    """The manifest's hooks as a repository's own, run by what is installed: nothing is fetched."""
    hooks = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    return {"repos": [{"repo": "local", "hooks": [hook | {"language": "system"} for hook in hooks]}]}


@pytest.fixture
def run(tmp_path: Path) -> Commit:
    """Runs one hook on a repository with these files."""

    def hook(name: str, **files: str) -> subprocess.CompletedProcess[str]:
        named = {key.replace("_", "."): text for key, text in files.items()} | OTHERS
        config = yaml.safe_dump(local_hooks())
        folder = repository(tmp_path / "repository", {".pre-commit-config.yaml": config, **named})
        return pre_commit(folder, tmp_path / "home", "run", "--all-files", name)

    return hook


def test_the_manifest_is_one_of_pre_commits(tmp_path: Path):
    done = pre_commit(tmp_path, tmp_path / "home", "validate-manifest", str(MANIFEST))
    assert done.returncode == 0, done.stdout
    assert [hook["id"] for hook in yaml.safe_load(MANIFEST.read_text())] == ["advisor-check", "advisor-fix"]


def test_files_that_are_no_configs_pass(run: Commit):
    done = run("advisor-check")
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout


def test_a_config_that_fits_passes(run: Commit):
    done = run("advisor-check", run_yaml=FITS)
    assert done.returncode == 0, done.stdout


def test_a_config_that_does_not_fit_stops_the_commit_and_is_left_alone(run: Commit, tmp_path: Path):
    done = run("advisor-check", run_yaml=TOO_LARGE)
    assert done.returncode == 1
    assert "exit code: 1" in done.stdout
    said = done.stdout.partition("exit code: 1")[2].strip().splitlines()
    assert re.fullmatch(r"run\.yaml  does not fit  [\d.]+ of [\d.]+ GiB on 1x A100-80GB SXM", said[0])
    assert re.fullmatch(r" {10}\d edits?, same training: [\d.]+ GiB", said[1])
    assert said[2:] == ["1 of 1 config does not fit. To write the edits: advisor check --fix FILE"]
    assert git(tmp_path / "repository", "status", "--porcelain") == ""


def test_a_config_that_cannot_be_read_stops_the_commit(run: Commit):
    done = run("advisor-check", run_yaml="base_model: [\n")
    assert done.returncode == 1
    assert "run.yaml:2:1" in done.stdout and "exit code: 2" in done.stdout


def test_fix_stops_the_commit_once_with_the_file_mended(run: Commit, tmp_path: Path):
    done = run("advisor-fix", run_yaml=TOO_LARGE)
    assert done.returncode == 1
    assert "files were modified by this hook" in done.stdout and "exit code" not in done.stdout
    said = done.stdout.strip().splitlines()
    assert re.fullmatch(r"fixed run\.yaml  \d edits?, same training: [\d.]+ -> [\d.]+ GiB", said[-2])
    assert said[-1] == "Look at it with git diff, then git add and commit again."
    folder = tmp_path / "repository"
    assert git(folder, "status", "--porcelain") == " M run.yaml\n"
    assert "liger_fused_linear_cross_entropy: true" in (folder / "run.yaml").read_text()
    again = pre_commit(folder, tmp_path / "home", "run", "--all-files")
    assert again.returncode == 0, again.stdout


def test_fix_leaves_files_that_need_nothing(run: Commit, tmp_path: Path):
    done = run("advisor-fix", run_yaml=FITS)
    assert done.returncode == 0, done.stdout
    assert git(tmp_path / "repository", "status", "--porcelain") == ""


@pytest.fixture(scope="module")
def hooks_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as a repository of hooks, as a user would name it."""
    folder = tmp_path_factory.mktemp("hooks") / "advisor"
    folder.mkdir()
    for name in SHIPPED:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, folder)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    git(folder, "tag", "v1")
    return folder


@pytest.mark.oracle
def test_a_commit_is_stopped_by_the_hook_that_pre_commit_installs(hooks_repository: Path, tmp_path: Path):
    """The whole way: pre-commit clones the repository, makes an environment, installs the package, and hooks in."""
    config = {"repos": [{"repo": str(hooks_repository), "rev": "v1", "hooks": [{"id": "advisor-check"}]}]}
    folder = repository(tmp_path / "repository", {".pre-commit-config.yaml": yaml.safe_dump(config), **OTHERS})
    home = tmp_path / "home"
    done = pre_commit(folder, home, "install", "--install-hooks")
    if done.returncode and any(word in (done.stdout + done.stderr).lower() for word in ("connection", "resolve host")):
        pytest.skip("no package index")
    assert done.returncode == 0, done.stdout + done.stderr

    def commit(text: str) -> subprocess.CompletedProcess[str]:
        (folder / "run.yaml").write_text(text, encoding="utf-8")
        git(folder, "add", "run.yaml")
        named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", *named, "commit", "-m", "run"]
        # Without this interpreter's folder in PATH: the hook's own environment must hold the command.
        path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if "venv" not in part)
        environment = clean(PRE_COMMIT_HOME=str(home), PATH=path)
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)

    stopped = commit(TOO_LARGE)
    assert stopped.returncode == 1 and "run.yaml  does not fit  " in stopped.stdout + stopped.stderr
    passed = commit(FITS)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "run.yaml" in git(folder, "ls-tree", "--name-only", "HEAD")
    (environment,) = home.glob("repo*/py_env-*")
    assert list(environment.glob("lib*/python*/site-packages/axolotl_advisor-*"))
