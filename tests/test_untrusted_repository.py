"""A repository that is merely looked at: its settings and links run no code, write no file and show no other file."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main
from advisor.report import FORMATS
from advisor.run.deepspeed.shipped import SHIPPED
from advisor.settings import ENVIRONMENT, NARROW

CONFIG = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 2\n"
RULE = """\
from pathlib import Path
from advisor import Rule
Path({mark!r}).touch()
rule = Rule(
    id="ours", stage="lint", title="ours", finds=lambda run: [], why="w", source="s", examples=(), level="note", safe=True
)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder; a repository of somebody else's lies in ``repo`` next to it."""
    for variable in (*ENVIRONMENT, NARROW):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "run.yaml").write_text(CONFIG)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", "--gpus", "8x a100-80gb", *arguments], catch_exceptions=False)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("value", ["full=mine", "sarif=../mine", "json=/tmp/advisor-test-mine", "concise=repo.txt"])
def test_settings_choose_no_file_to_write(here: Path, value: str):
    (here / "mine").write_text("mine")
    before = files_below(here.parent)
    plain = check("../repo/run.yaml")
    (here.parent / "repo" / "advisor.toml").write_text(f'output-format = "{value}"\n')
    result = check("../repo/run.yaml")
    assert result.exit_code == plain.exit_code == 1
    assert files_below(here.parent) == sorted([*before, "repo/advisor.toml"]) and (here / "mine").read_text() == "mine"
    assert result.stderr.count("`=FILE`") == len(result.stderr.splitlines()) == 1
    assert re.search("does.not.fit", result.stdout, re.IGNORECASE)


def test_the_call_and_the_environment_choose_one(here: Path, monkeypatch: pytest.MonkeyPatch):
    assert check("--output-format", "json=a.json", "../repo/run.yaml").exit_code == 1
    monkeypatch.setenv("ADVISOR_OUTPUT_FORMAT", "json=b.json")
    assert check("../repo/run.yaml").exit_code == 1
    assert files_below(here) == ["a.json", "b.json"]


def with_rules(folder: Path, mark: Path) -> None:
    (folder / "rules").mkdir()
    (folder / "rules" / "ours.py").write_text(RULE.format(mark=str(mark)))


def test_a_link_to_the_users_own_settings_runs_no_rules_of_the_repository(here: Path):
    """The folders that the settings name are looked for next to the link."""
    (here.parent / "advisor.toml").write_text('rules = ["rules"]\n')
    with_rules(here.parent / "repo", here / "ran")
    (here.parent / "repo" / "advisor.toml").symlink_to(here.parent / "advisor.toml")
    result = check("../repo/run.yaml")
    assert result.exit_code == 1 and "are not run" in result.stderr
    assert not (here / "ran").exists()


def test_where_settings_are_not_trusted_rules_are_those_that_the_environment_names(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    repository = here.parent / "repo"
    monkeypatch.chdir(repository)
    (repository / "advisor.toml").write_text('rules = ["rules"]\nignore = ["ours", "not-there"]\n')
    with_rules(repository, here / "theirs")
    with_rules(here, here / "mine")
    monkeypatch.setenv(NARROW, "1")
    monkeypatch.setenv("ADVISOR_RULES", os.fspath(here / "rules"))
    result = check("run.yaml")
    assert result.exit_code == 1 and "`rules` is not used" in result.stderr
    assert files_below(here) == ["mine", "rules/ours.py"]


SECRET = {
    "auths": {"ghcr.io": {"auth": "SECRET-1"}},
    "credsStore": "SECRET-2",
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "nvme_path": "SECRET-3"}, "SECRET-KEY": 1},
    "optimizer": {"type": "SECRET-4", "params": {"lr": "SECRET-5"}},
    "scheduler": {"type": "SECRET-6"},
    "bf16": {"enabled": True},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_clipping": "SECRET-7",
    "wall_clock_breakdown": "SECRET-8",
    "communication_data_type": "SECRET-9",
}
OTHERS = [
    '{"zero_optimization": {"stage": "SECRET-1"}}',
    '{"zero_optimization": {"stage": 2, "reduce_bucket_size": "SECRET-1"}}',
    '{"bf16": "SECRET-1"}',
    '"SECRET-1"',
    "password: SECRET-1\n",
    '{"a": SECRET-1}',
    '{"a": "SECRET-1" "b"}',
    "{'a': 'SECRET-1'}",
    '{"SECRET-1": 1, "SECRET-1": 2}',
]
FORMAT_OPTIONS = [part for name in FORMATS for part in ("--output-format", f"{name}=out.{name}")]


@pytest.fixture
def outside(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file outside the repository, which its YAML names; the call is made in the repository."""
    repository = here.parent / "repo"
    (here.parent / "home").mkdir()
    secret = here.parent / "home" / "config.json"
    secret.write_text(json.dumps(SECRET, indent=2))
    (repository / "link.json").symlink_to(secret)
    (repository / "run.yaml").write_text(CONFIG + "micro_batch_size: 64\n")
    (repository / "out").mkdir()
    monkeypatch.chdir(repository)
    return secret


def said(folder: Path, named: str, *options: str) -> str:
    """All that a call says and writes."""
    (folder / "run.yaml").write_text(CONFIG.replace("size: 2", "size: 64") + f"deepspeed: {named}\n")
    text = ""
    for extra in ((), ("--diff", "--unsafe-fixes"), ("--fix", "--unsafe-fixes")):
        result = check(*options, *FORMAT_OPTIONS, *extra, "run.yaml")
        shown = check(*options, *extra, "run.yaml")
        text += result.output + shown.output
    return text + "".join(path.read_text() for path in folder.glob("*") if path.is_file() and not path.is_symlink())


@pytest.mark.parametrize("named", ["../home/config.json", "link.json", "absolute"])
def test_of_a_json_outside_the_repository_only_names_of_keys_are_said(outside: Path, named: str):
    repository = Path.cwd()
    text = said(repository, str(outside) if named == "absolute" else named)
    assert "SECRET-KEY" in text and "`auths`" in text
    assert re.findall(r"SECRET-\d", text) == []
    assert outside.read_text() == json.dumps(SECRET, indent=2)


@pytest.mark.parametrize("content", OTHERS)
def test_nor_is_it_quoted_where_it_cannot_be_read(outside: Path, content: str):
    outside.write_text(content)
    text = said(Path.cwd(), "../home/config.json")
    assert not re.search(r"SECRET-\d", text.replace("`SECRET-1` in a file outside", ""))
    assert "outside the repository" in text or "no DeepSpeed config" in text


def test_a_link_alone_is_not_shown_either(outside: Path):
    result = check(*FORMAT_OPTIONS, "link.json")
    text = result.output + check("link.json").output + "".join(path.read_text() for path in Path.cwd().glob("out.*"))
    assert "`auths`" in text and not re.search(r"SECRET-\d", text)


@pytest.mark.slow
def test_a_json_in_the_repository_is_shown_and_one_that_axolotl_ships(outside: Path):
    repository = Path.cwd()
    (repository / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": 2}, "mine": "VALUE"}, indent=2))
    assert "VALUE" in said(repository, "ds.json")
    shipped = outside.with_name("zero2.json")
    shipped.write_text(json.dumps(SHIPPED["zero2.json"]))
    assert "outside the repository" not in said(repository, "../home/zero2.json")


FIXABLE = '{"zero_optimization": {"stage": 2}, "allgather_bucket_size": 1, "zero_alow_untested_optimizer": true}'


@pytest.mark.parametrize("kind", ["json", "yaml", "copy", "output-dir"])
def test_a_fix_is_not_written_through_a_link_to_the_outside(outside: Path, kind: str):
    repository = Path.cwd()
    text = CONFIG.replace("size: 2", "size: 64")
    options: list[str] = []
    match kind:
        case "json":
            outside.write_text(FIXABLE)
            text += "deepspeed: link.json\n"
        case "yaml":
            outside = outside.with_name("theirs.yaml")
            (repository / "run.yaml").unlink()
            outside.write_text(text)
            (repository / "run.yaml").symlink_to(outside)
        case "copy":
            for step in ("zero-1", "zero-2", "zero-3", "offload-optimizer", "offload-params"):
                (repository / f"run.{step}.json").symlink_to(outside)
        case _:
            (repository / "out" / "run.yaml").symlink_to(outside)
            options = ["--output-dir", "out"]
    if kind != "yaml":
        (repository / "run.yaml").write_text(text)
    before = outside.read_text()
    result = check("--fix", "--unsafe-fixes", *options, "run.yaml")
    assert outside.read_text() == before
    assert result.exit_code in ((0, 1) if kind == "json" else (2,)), result.output
    assert (kind == "json") or "link to a file outside its repository" in result.output


def test_a_link_inside_the_repository_is_followed(here: Path, monkeypatch: pytest.MonkeyPatch):
    repository = here.parent / "repo"
    monkeypatch.chdir(repository)
    (repository / "link.yaml").symlink_to(repository / "run.yaml")
    (repository / "run.yaml").write_text(CONFIG + "lora_dropuot: 0.1\n")
    check("--fix", "--unsafe-fixes", "link.yaml")
    assert (repository / "link.yaml").is_symlink() and "lora_dropout" in (repository / "run.yaml").read_text()


@pytest.mark.parametrize("repository", [True, False])
def test_a_folder_that_is_searched_shows_nothing_that_a_link_leads_to_outside(
    here: Path, monkeypatch: pytest.MonkeyPatch, repository: bool
):
    """With or without a repository; what is named itself, the user wants to be checked."""
    folder = here.parent / "repo"
    if not repository:
        (folder / ".git").rmdir()
    secret = here.parent / "secret.yaml"
    secret.write_text(CONFIG + "password: SECRET-1\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "link.yaml").symlink_to(secret)
    (folder / "link.yaml").symlink_to(folder / "run.yaml")
    monkeypatch.chdir(folder)
    for path in (".", str(folder), "inner"):
        result = check(path)
        assert "is a link out of" in result.stderr and "inner/link.yaml" in result.stderr
        assert "SECRET-1" not in result.output and str(secret) not in result.output
    assert "is a link" not in check("link.yaml").output
    assert "SECRET-1" in check("-v", "inner/link.yaml").output


@pytest.mark.parametrize("how", ["file", "folder"])
@pytest.mark.parametrize(
    "options",
    [
        ("check", "-o", "{}", "run.yaml"),
        ("check", "--output-format", "json={}", "run.yaml"),
        ("estimate", "-o", "{}", "run.yaml"),
        ("estimate", "--timeline", "{}", "run.yaml"),
    ],
)
def test_a_report_is_not_written_through_a_link_to_the_outside(outside: Path, options: tuple[str, ...], how: str):
    """The name that a job writes to may be one that the repository holds."""
    before = outside.read_text()
    Path("report").symlink_to(outside if how == "file" else outside.parent)
    target = "report" if how == "file" else f"report/{outside.name}"
    command = [option.format(target) for option in options]
    result = CliRunner().invoke(main, [*command, "--gpus", "1x h200"], catch_exceptions=False)
    assert result.exit_code == 2 and "is a link out of its repository" in result.stderr
    assert outside.read_text() == before


def test_patched_copies_are_not_written_into_a_folder_outside(outside: Path):
    (outside.parent / "run.yaml").write_text("mine")
    Path("patched").symlink_to(outside.parent)
    result = check("--fix", "--unsafe-fixes", "--output-dir", "patched", "run.yaml")
    assert result.exit_code == 2 and "link to a file outside its repository" in result.stderr
    assert (outside.parent / "run.yaml").read_text() == "mine"
