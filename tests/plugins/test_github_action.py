"""The composite action: its metadata, and its shell steps run as the runner runs them, against a fake ``gh``."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ..json_schemas import validator_of
from ..review_requests import GITHUB_COMMENT, GITHUB_PUBLISHED, GITHUB_REVIEW
from .runner import FOLDER, Job

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SAMPLE = ROOT / "sample_configs" / "lora-8b-large-batch.yaml"
GH = """\
#!/usr/bin/env bash
# Writes down how it was called; the comments of the pull request are those of $GH_COMMENTS.
echo "$*" >> "$GH_LOG"
[ -z "${GH_FAILS:-}" ] || exit 1
for word in "$@"; do
    case $word in
        body=@*) cp "${word#body=@}" "$GH_LOG.body" ;;
        */pulls/*/comments?per_page=100) printf '%s' "${GH_REVIEWED:-}" ;;
        */comments?per_page=100) printf '%s' "$GH_COMMENTS" ;;
        */advisor-review.json) cp "$word" "$GH_LOG.review" ;;
    esac
done
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "my configs").mkdir(parents=True)
    shutil.copy(SAMPLE, folder / "my configs" / "too large.yaml")
    (folder / "ci.yaml").write_text("jobs: {}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "output").touch()
    return folder


def job(workspace: Path, **inputs: str) -> Job:
    return Job(workspace, {name.replace("_", "-"): value for name, value in inputs.items()})


def test_the_metadata_keeps_to_githubs_schema():
    # The schema is older than the key `continue-on-error` in the steps of composite actions.
    steps = [{key: value for key, value in step.items() if key != "continue-on-error"} for step in STEPS]
    validator = validator_of("github-action")
    validator.validate(ACTION | {"runs": ACTION["runs"] | {"steps": steps}})
    assert not validator.is_valid(ACTION | {"runs": {"using": "composite", "steps": [{"run": "true"}]}})


def test_every_step_of_the_shell_names_its_shell_and_takes_no_expression_into_its_script():
    for step in STEPS:
        assert ("run" in step) == ("shell" in step) != ("uses" in step)
        assert "${{" not in step.get("run", ""), "an input inside a script is code"


def test_every_input_and_output_is_used_and_told():
    text = (FOLDER / "action.yml").read_text(encoding="utf-8").partition("\nruns:")[2]
    for name, entry in ACTION["inputs"].items():
        assert f"inputs.{name} " in text, name
        assert entry["description"] and "default" in entry
    written = set(re.findall(r'echo "([\w-]+)=', "".join(path.read_text() for path in FOLDER.glob("*.sh"))))
    others = {"artifact-url"}
    assert set(re.findall(r"steps\.\w+\.outputs\.([\w-]+)", (FOLDER / "action.yml").read_text())) == written | others


def test_the_variables_of_each_script_are_given_to_it():
    """With `set -u` an unknown one ends the step."""
    for step in STEPS:
        if "run" not in step:
            continue
        script = re.search(r"\$GITHUB_ACTION_PATH/(\w+\.sh)", step["run"])
        text = (FOLDER / script[1]).read_text() if script else step["run"]
        wanted = set(re.findall(r"\$\{?([A-Z][A-Z_]+)", text))
        given = {*step["env"], "RUNNER_TEMP", "BASH_SOURCE"} | {name for name in wanted if name.startswith("GITHUB_")}
        assert wanted <= given, step["name"]
        assert set(step["env"]) - {"GH_TOKEN"} <= wanted, step["name"]


def test_annotations_summary_and_outputs(workspace: Path):
    run = job(workspace, gpus="1x rtx-4090")
    done = run.step("Check")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("::error title=advisor (does-not-fit),file=my configs/too large.yaml,line=3,")
    outputs = run.outputs()
    assert outputs["exit-code"] == "1"
    (log,) = json.loads(Path(outputs["sarif"]).read_text())["runs"]
    assert (
        log["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        == "my%20configs/too%20large.yaml"
    )
    assert run.read("summary").startswith("### ")
    assert run.step("Verdict").returncode == 1


def test_what_fits_passes(workspace: Path):
    run = job(workspace, gpus="1x h200")
    assert run.step("Check").returncode == 0
    assert run.outputs()["exit-code"] == "0" and run.step("Verdict").returncode == 0


def test_paths_are_lines_and_may_hold_anything(workspace: Path):
    odd = workspace / "--help; touch hacked"
    odd.mkdir()
    (odd / "run.yaml").write_text("base_model: a/b\nmicro_batch_size: [\n")
    run = job(workspace, paths="my configs\r\n\n--help; touch hacked\n", gpus="1x h200")
    done = run.step("Check")
    assert done.returncode == 0 and run.outputs()["exit-code"] == "2"
    assert "hacked/run.yaml:3:1" in done.stdout
    assert not list(workspace.rglob("hacked"))


def test_what_cannot_be_read_is_an_annotation_and_in_the_comment(workspace: Path):
    (workspace / "broken.yaml").write_text("base_model: [ # 100%\n")
    run = job(workspace, gpus="1x h200")
    done = run.step("Check")
    assert "::error title=advisor could not run::error: " in done.stdout and "broken.yaml:2:1%0A" in done.stdout
    assert done.stderr == ""
    assert run.outputs()["exit-code"] == "2" and run.step("Verdict").returncode == 2
    assert "**Could not be checked:**" in run.read("summary")


def test_a_bad_option_is_told_where_no_report_was_written(workspace: Path):
    run = job(workspace, gpus="8x nothing-like-this", fail_on="warning")
    done = run.step("Check")
    assert done.returncode == 0 and "::error title=advisor could not run::" in done.stdout
    assert run.outputs()["exit-code"] == "2"


def commands(log: str) -> list[str]:
    """The lines that the runner would obey: it leaves alone what stands between stop-commands and its token."""
    obeyed: list[str] = []
    token = None
    for line in map(str.strip, log.splitlines()):
        if token is None and line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif token is not None:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::") or "##[" in line:
            obeyed.append(line)
    assert token is None
    return obeyed


@pytest.mark.parametrize("content", ["base_model: [\n", "base_model: a/b\nsequence_len: 1\nlora_dropuot: 1\n"])
def test_the_names_of_files_are_no_commands(workspace: Path, content: str):
    for n in range(12):
        (workspace / f"z{n}\n::stop-commands::zzz\n::error file=README.md,line=1::x\n##[add-mask]y.yaml").write_text(
            content
        )
    (workspace / "::add-mask::true.yaml").write_text(content)
    done = job(workspace, gpus="1x h200").step("Check")
    assert done.returncode == 0 and done.stderr == ""
    obeyed = commands(done.stdout)
    assert obeyed and all(re.match(r"::(error|warning|notice) title=advisor", line) for line in obeyed)
    assert not any("README.md" in line.split("::")[1].replace("%0A", "") and "line=1:" in line for line in obeyed)


def settings(workspace: Path) -> None:
    """Settings that run code, choose a file to write, and leave a rule out."""
    (workspace / "rules").mkdir()
    (workspace / "rules" / "evil.py").write_text("import pathlib\npathlib.Path('pwned').touch()\n")
    (workspace / "advisor.toml").write_text(
        'gpus = "1x rtx-4090"\nrules = ["rules"]\nselect = ["lora"]\nignore = ["does-not-fit"]\noutput-format = "full=x"\n'
    )


def test_a_pull_requests_settings_only_narrow(workspace: Path):
    settings(workspace)
    run = job(workspace)
    done = run.step("Check")
    assert not (workspace / "pwned").exists() and not (workspace / "x").exists()
    assert "`rules` is not used" in done.stdout and "`select` is not used" in done.stdout
    assert "no hardware" not in done.stdout and "does-not-fit" not in "".join(commands(done.stdout))
    assert run.outputs()["exit-code"] == "0"


def test_isolated_leaves_the_settings_unread(workspace: Path):
    settings(workspace)
    run = job(workspace, isolated="true", gpus="1x rtx-4090")
    assert "does-not-fit" in run.step("Check").stdout
    assert run.outputs()["exit-code"] == "1" and not (workspace / "pwned").exists()


def test_rules_are_run_from_folders_that_the_input_names_and_after_a_push_from_the_settings(workspace: Path):
    settings(workspace)
    trusted = workspace.parent / "trusted"
    shutil.copytree(workspace / "rules", trusted)
    for folder in (str(trusted), "rules"):
        job(workspace, rules=f"{folder}\r\n").step("Check")
        assert (workspace / "pwned").exists()
        (workspace / "pwned").unlink()
    Job(workspace, {}, event="push").step("Check")
    assert (workspace / "pwned").exists()


RULE = """\
from pathlib import Path

from advisor.engine.rule import Hit, Rule

Path("ran-{name}").touch()
rule = Rule(
    id="house-{name}", stage="lint", title="Use {name}", level="warning", why="Ours.", cost="None.", source="ours",
    finds=lambda run: (Hit(at="base_model", message="says {name}"),), examples=(),
)
"""


def committed(workspace: Path, files: Mapping[str, str]) -> str:
    """A commit with these files, and its name."""
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    named = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one more"]):
        subprocess.run([*named, *words], cwd=workspace, check=True, capture_output=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=workspace, check=True, capture_output=True, text=True)
    return head.stdout.strip()


@pytest.fixture
def based(workspace: Path) -> Job:
    """A pull request that changes a rule of its base, and adds a folder of rules to the settings."""
    base = committed(
        workspace,
        {"advisor.toml": 'rules = ["house"]\n', "house/house_base.py": RULE.replace("{name}", "base")},
    )
    changed = {
        "house/house_base.py": RULE.replace("{name}", "pull"),
        "more/house_more.py": RULE.replace("{name}", "more"),
    }
    committed(workspace, {"advisor.toml": 'rules = ["house", "more"]\n', **changed})
    return Job(workspace, {"gpus": "1x rtx-4090"}, base=base)


def test_a_pull_request_is_checked_by_the_rules_of_its_base_as_they_are_there(based: Job):
    done = Job(based.workspace, {**based.inputs, "against": "none"}, base=based.base).step("Check")
    assert (based.workspace / "ran-base").exists(), done.stdout + done.stderr
    assert "(house-base)" in done.stdout and "says base" in done.stdout
    assert not list(based.workspace.glob("ran-[pm]*"))
    assert subprocess.run(
        ["git", "status", "--short"], cwd=based.workspace, check=True, capture_output=True
    ).stdout == (b"?? ran-base\n")


def test_the_action_at_the_root_runs_them_too(based: Job):
    done = replace(based, folder=ROOT, inputs={**based.inputs, "against": "none"}).step("Check")
    assert done.returncode == 0 and "says base" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("inputs", "event", "rule"),
    [
        ({"isolated": "true"}, "pull_request", None),
        ({"rules": "/nowhere"}, "pull_request", None),
        ({}, "pull_request", "base"),
        ({}, "pull_request_target", "base"),
    ],
)
def test_rules_of_the_base_are_run_where_nothing_else_is_asked_for(
    based: Job, inputs: dict[str, str], event: str, rule: str | None
):
    Job(based.workspace, {**based.inputs, **inputs}, event=event, base=based.base).step("Check")
    assert [path.name for path in based.workspace.glob("ran-*")] == ([f"ran-{rule}"] if rule else [])


@pytest.mark.parametrize("rules", ["../outside", "/tmp", "missing", "linked"])
def test_rules_of_the_base_that_lie_elsewhere_are_a_warning_and_not_run(workspace: Path, rules: str):
    (workspace.parent / "outside").mkdir()
    (workspace.parent / "outside" / "house_out.py").write_text(RULE.replace("{name}", "out"))
    (workspace / "linked").symlink_to(workspace.parent / "outside")
    base = committed(workspace, {"advisor.toml": f'rules = ["{rules}"]\n'})
    run = Job(workspace, {"gpus": "1x rtx-4090"}, base=base)
    done = run.step("Check")
    assert "::warning title=advisor::the rules of the base are not run: " in done.stdout
    assert not list(workspace.glob("ran-*")) and run.outputs()["exit-code"] == "0"


MODULES = (
    "venv",
    "pip",
    "ensurepip",
    "json",
    "os",
    "re",
    "runpy",
    "yaml",
    "click",
    "advisor",
    "sitecustomize",
    "base64",
)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["pull_request_target", "push"])
def test_no_step_runs_a_module_of_the_checkout(based: Job, event: str):
    """Neither from the working directory nor where the job's PYTHONPATH leads to it."""
    folder = based.workspace
    for config in folder.rglob("*.yaml"):
        config.write_text(config.read_text() + "logging_steps: 7\n")
    if event == "push":
        (folder / "advisor.toml").write_text('rules = ["more"]\n')
    for name in MODULES:
        text = f"open({str(folder / 'ran-module')!r} + '-{name}', 'w')\nraise SystemExit(3)\n"
        (folder / name).mkdir(exist_ok=True)
        for file in (folder / name / "__init__.py", folder / name / "__main__.py", folder / f"{name}.py"):
            file.write_text(text)
    run = Job(folder, {"gpus": "1x rtx-4090", "version": "0"}, event=event, base=based.base)
    quiet = {"PIP_NO_INDEX": "1"} | ({"PYTHONPATH": f"{folder}:."} if event == "push" else {})
    assert "No matching distribution" in run.step("Install", **quiet).stderr
    for step in ("Check", "Comment", "Suggest"):
        done = run.step(step, **quiet)
        assert done.returncode == 0 and done.stderr == "" and "could not run" not in done.stdout, done.stdout
    assert run.outputs()["exit-code"] in ("0", "1") and run.read("gh.log.body")
    assert not list(folder.glob("ran-module*"))
    assert [path.name for path in folder.glob("ran-*")] == ["ran-more" if event == "push" else "ran-base"]


def test_a_run_without_hardware_is_a_warning(workspace: Path):
    (workspace / "advisor.toml").write_text('ignore = ["unknown-hardware"]\n')
    (workspace / "run.yaml").write_text(
        "base_model: Qwen/Qwen2.5-0.5B\nlearning_rate: 1e-5\ndatasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"
    )
    run = job(workspace, paths="run.yaml")
    (warning,) = [line for line in commands(run.step("Check").stdout) if "(no hardware)" in line]
    assert warning.startswith("::warning ") and run.outputs()["exit-code"] == "0"


def test_only_what_changed_since_a_revision(workspace: Path):
    def git(*arguments: str) -> None:
        named = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        subprocess.run(named, cwd=workspace, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    run = job(workspace, gpus="1x rtx-4090", changed_since="HEAD")
    done = run.step("Check")
    assert done.returncode == 0, done.stderr
    assert run.outputs()["exit-code"] == "0" and "does-not-fit" not in done.stdout


def test_a_first_comment_is_made(workspace: Path):
    run = job(workspace, gpus="1x rtx-4090")
    run.step("Check")
    done = run.step("Comment")
    assert done.returncode == 0 and done.stdout == "", done.stdout
    calls = run.read("gh.log").splitlines()
    assert len(calls) == 2
    assert calls[0].startswith("api --paginate repos/acme/runs/issues/7/comments?per_page=100 --jq ")
    assert calls[1].startswith("api --silent --method POST repos/acme/runs/issues/7/comments --field body=@")
    assert run.read("gh.log.body").startswith("<!-- axolotl-advisor -->\n### ")


def test_a_comment_that_is_there_is_renewed(workspace: Path):
    run = job(workspace, gpus="1x h200")
    run.step("Check")
    assert run.step("Comment", GH_COMMENTS="41\n42\n").returncode == 0
    assert " --method PATCH repos/acme/runs/issues/comments/41 " in run.read("gh.log")
    assert "does not fit" not in run.read("gh.log.body")


def sent(run: Job) -> dict[str, str]:
    """What gh sends of its last call: each ``--field`` is a property, ``@`` a file's text (cli.github.com/manual/gh_api)."""
    call = run.read("gh.log").splitlines()[-1]
    assert "--input" not in call and "-f " not in call and "-F " not in call
    fields = (field.partition("=") for field in re.findall(r"--(?:raw-)?field (\S+)", call))
    return {
        name: Path(value[1:]).read_text(encoding="utf-8") if value[:1] == "@" else value for name, _, value in fields
    }


def test_comments_hold_what_github_publishes_and_no_more(workspace: Path):
    run = job(workspace, gpus="1x rtx-4090")
    run.step("Check")
    takes = jsonschema.Draft202012Validator(GITHUB_COMMENT)
    for old, method in (("", "POST"), ("41\n", "PATCH")):
        assert run.step("Comment", GH_COMMENTS=old).returncode == 0
        assert f" --method {method} " in run.read("gh.log").splitlines()[-1]
        takes.validate(sent(run))
    for wrong in ({}, {"body": ""}, {"text": "words"}, {"body": "words", "event": "COMMENT"}, {"body": "x" * 65_537}):
        assert not takes.is_valid(wrong), wrong


def test_only_a_comment_of_this_actions_own_is_renewed():
    """gh picks it, by this filter."""
    script = (FOLDER / "comment.sh").read_text()
    assert 'select(.user.type == \\"Bot\\" and (.body | startswith(\\"$marker\\")))' in script


def test_no_comment_is_made_where_nothing_was_checked(workspace: Path):
    run = job(workspace, paths="ci.yaml")
    run.step("Check")
    assert run.step("Comment").returncode == 0
    assert len(run.read("gh.log").splitlines()) == 1


def test_a_token_that_may_not_write_is_a_warning(workspace: Path):
    run = job(workspace, gpus="1x rtx-4090")
    run.step("Check")
    done = run.step("Comment", GH_FAILS="1")
    assert done.returncode == 0 and done.stdout.startswith("::warning title=advisor::no comment")


def test_a_long_comment_is_cut_at_a_line_below_githubs_limit(workspace: Path):
    run = job(workspace, gpus="1x rtx-4090")
    run.step("Check")
    Path(run.outputs()["markdown"]).write_text(
        "| config |\n" + "é" * 99 + "\n" + ("ü" * 60 + "\n") * 2000, encoding="utf-8"
    )
    assert run.step("Comment").returncode == 0
    body = run.read("gh.log.body")
    assert 50_000 < len(body.encode()) < 65_536
    assert "Cut here" in body and body.endswith("ü" * 60 + "\n")


def test_findings_of_an_incomplete_check_are_not_sent():
    """Code scanning would close what was found in the file that is missing."""
    (step,) = (step for step in STEPS if step.get("uses", "").startswith("github/codeql-action/"))
    assert "exit-code != '2'" in step["if"] and step["continue-on-error"] is True


@pytest.fixture
def compared(workspace: Path) -> Job:
    """A pull request that makes a run too large."""
    path = workspace / "my configs" / "too large.yaml"
    (workspace / "advisor.toml").write_text('ignore = ["fused-loss"]\n')
    small = path.read_text().replace("micro_batch_size: 8\ngradient_accumulation_steps: 1", "{}")
    path.write_text(small.format("micro_batch_size: 1\ngradient_accumulation_steps: 8"))
    named = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*named, *words], cwd=workspace, check=True, capture_output=True)
    base = subprocess.run(["git", "rev-parse", "HEAD"], cwd=workspace, check=True, capture_output=True, text=True)
    path.write_text(small.format("micro_batch_size: 8\ngradient_accumulation_steps: 1"))
    subprocess.run([*named, "commit", "-qam", "second"], cwd=workspace, check=True, capture_output=True)
    return Job(workspace, {"gpus": "1x rtx-4090"}, base=base.stdout.strip())


def test_the_comment_compares_with_the_base(compared: Job):
    assert compared.step("Check").returncode == 0
    text = Path(compared.outputs()["markdown"]).read_text()
    assert text.startswith("### ❌ `my configs/too large.yaml` no longer fits\n")
    assert re.search(r"\| [\d.]+ → \*\*[\d.]+\*\* of 23\.1 \| ▲ ", text)
    assert re.search(r"against <code>[0-9a-f]{7}</code>", text)


def test_fixes_on_lines_of_the_pull_request_are_suggested_once(compared: Job):
    compared.step("Check")
    done = compared.step("Suggest")
    assert done.returncode == 0 and done.stdout == "", done.stdout
    calls = compared.read("gh.log").splitlines()
    assert calls[0] == "api --paginate repos/acme/runs/pulls/7/comments?per_page=100 --jq .[].body"
    assert calls[1].startswith("api --silent --method POST repos/acme/runs/pulls/7/reviews --input ")
    review = json.loads(compared.read("gh.log.review"))
    jsonschema.Draft202012Validator(GITHUB_REVIEW).validate(review)
    (comment,) = review["comments"]
    assert "```suggestion\nmicro_batch_size: 1\ngradient_accumulation_steps: 8\n```" in comment["body"]
    assert compared.step("Suggest", GH_REVIEWED=comment["body"]).returncode == 0
    assert len([call for call in compared.read("gh.log").splitlines() if "POST" in call]) == 1


def test_the_action_at_the_root_comments_and_suggests_too(compared: Job):
    run = replace(compared, folder=ROOT)
    for name in ("Check", "Comment", "Suggest"):
        done = run.step(name)
        assert done.returncode == 0 and "::warning" not in done.stdout, done.stderr
    assert "### ❌ `my configs/too large.yaml` no longer fits" in run.read("gh.log.body")
    assert json.loads(run.read("gh.log.review"))["comments"]


def test_a_review_with_anything_that_github_does_not_know_is_told_apart():
    comment = {"path": "run.yaml", "line": 3, "side": "RIGHT", "body": "words"}
    review = {"event": "COMMENT", "body": "words", "comments": [comment]}
    ours = jsonschema.Draft202012Validator(GITHUB_REVIEW)
    assert ours.is_valid(review)
    for wrong in (
        {"line_number": 3},
        {"start_line": 2},
        {"line": "3"},
        {"position": 4},
        {"side": "BOTH"},
        {"path": "/run.yaml"},
    ):
        assert not ours.is_valid({**review, "comments": [{**comment, **wrong}]}), wrong
    assert not ours.is_valid({**review, "event": "COMMENTED"}) and not ours.is_valid({"comments": [comment]})
    assert jsonschema.Draft202012Validator(GITHUB_PUBLISHED).is_valid({"comments": [{"path": "a", "body": "b"}]})


def test_suggestions_that_cannot_be_sent_are_a_warning(compared: Job):
    compared.step("Check")
    done = compared.step("Suggest", GH_FAILS="1")
    assert done.returncode == 0 and done.stdout.startswith("::warning title=advisor::no suggestions")


def test_without_the_base_the_check_goes_on(workspace: Path):
    run = Job(workspace, {"gpus": "1x rtx-4090"}, base="0" * 40)
    done = run.step("Check")
    assert "::notice title=advisor::no comparison" in done.stdout and run.outputs()["exit-code"] == "1"
    assert run.step("Suggest").stdout == ""


def test_none_compares_with_nothing(compared: Job):
    Job(compared.workspace, {"gpus": "1x rtx-4090", "against": "none"}, base=compared.base).step("Check")
    assert " against " not in Path(compared.outputs()["markdown"]).read_text()


def test_the_html_report_is_kept_and_linked(workspace: Path):
    run = job(workspace, gpus="1x rtx-4090")
    run.step("Check")
    assert Path(run.outputs()["html"]).read_text().startswith("<!doctype html>")
    with (workspace.parent / "output").open("a") as outputs:
        outputs.write("artifact-url=https://github.com/acme/runs/artifacts/1\n")
    assert run.step("Link the report").returncode == 0
    link = "[The report with its pictures](https://github.com/acme/runs/artifacts/1)"
    assert link in run.read("summary") and link in run.read("advisor.md")


@pytest.mark.oracle
@pytest.mark.parametrize("folder", [".", "plugins/github_action"])
def test_the_command_is_installed_from_the_checkout_of_the_action(workspace: Path, folder: str):
    source = workspace.parent / "source"
    for name in (
        "action.yml",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "advisor",
        "rules",
        "plugins",
        "sample_configs",
    ):
        copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        copied(ROOT / name, source / name)
    run = replace(job(workspace, gpus="1x rtx-4090"), folder=source / folder)
    done = run.step("Install")
    if done.returncode and "connection" in done.stderr.lower():
        pytest.skip("no package index")
    assert done.returncode == 0, done.stderr
    assert Path(run.outputs()["command"]).is_relative_to(workspace.parent)
    assert run.step("Check").returncode == 0 and run.outputs()["exit-code"] == "1"
