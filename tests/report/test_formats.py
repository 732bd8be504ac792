"""All formats of one call speak of the same findings."""

import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from advisor.cli.group import FORMAT_HELP
from advisor.cli.main import main
from advisor.report import FORMATS, schema_models
from advisor.report.wording import VERDICT_RULES

from ..json_schemas import validator_of

SAMPLES = Path(__file__).parents[2] / "sample_configs"
FILES = {name: f"out/report.{name}" for name in FORMATS}
CHECKED = (
    "dpo-8b-full.yaml",
    "fsdp2-14b-no-checkpoints.yaml",
    "full-8b-out-of-memory.yaml",
    "long-context-32k-plain-loss.yaml",
    "lora-8b-large-batch.yaml",
    "qlora-moe-30b.yaml",
    "zero3-70b-too-few-cards.yaml",
)
Told = Counter[tuple[str, str, int]]


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", "--isolated", *arguments])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of each format, all from one call on sample configs and on a YAML that is wrong in many ways."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("formats")
        patch.chdir(folder)
        for variable in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"):
            patch.delenv(variable, raising=False)
        (folder / "configs").mkdir()
        for name in CHECKED:
            shutil.copy(SAMPLES / name, folder / "configs")
        (folder / "configs" / "wrong.yaml").write_text(
            "base_model: x/y  # é\nmicro_batch_sise: 1\nload_in_4bit: true\n"
        )
        (folder / "out").mkdir()
        asked = [part for name, file in FILES.items() for part in ("--output-format", f"{name}={file}")]
        result = check("--gpus", "8x a100-80gb", *asked, "configs")
        assert result.exit_code == 1 and result.output == ""
        return {name: (folder / file).read_text(encoding="utf-8") for name, file in FILES.items()}


def told_by_json(text: str) -> Told:
    runs = json.loads(text)["runs"]
    places = ((f["rule"], f["location"]["file"], f["location"]["line"]) for run in runs for f in run["findings"])
    return Counter(places)


def told_by_sarif(text: str) -> Told:
    def place(result: Any) -> tuple[str, str, int]:
        at = result["locations"][0]["physicalLocation"]
        return result["ruleId"], at["artifactLocation"]["uri"], at["region"]["startLine"]

    return Counter(place(result) for result in json.loads(text)["runs"][0]["results"])


def told_by_gitlab(text: str) -> Told:
    issues = json.loads(text)
    return Counter((i["check_name"], i["location"]["path"], i["location"]["lines"]["begin"]) for i in issues)


def test_json_sarif_and_gitlab_tell_the_same_findings(written: dict[str, str]):
    told = told_by_json(written["json"])
    assert len(told) > 20
    assert told == told_by_sarif(written["sarif"]) == told_by_gitlab(written["gitlab"])


def findings_of(text: str) -> list[dict[str, Any]]:
    return [finding for run in json.loads(text)["runs"] for finding in run["findings"]]


@pytest.mark.parametrize("name", ["concise", "github"])
def test_every_rule_that_speaks_is_named(written: dict[str, str], name: str):
    for rule, _, _ in told_by_json(written["json"]):
        assert rule in written[name], rule


@pytest.mark.parametrize("name", ["full", "markdown"])
def test_every_rule_of_an_error_or_warning_is_named(written: dict[str, str], name: str):
    loud = {finding["rule"] for finding in findings_of(written["json"]) if finding["level"] != "note"}
    verdicts = VERDICT_RULES if name == "full" else frozenset[str]()
    assert [rule for rule in loud - verdicts if rule not in written[name]] == []


def test_concise_has_a_line_for_each(written: dict[str, str]):
    assert len(written["concise"].splitlines()) - 1 == sum(told_by_json(written["json"]).values())


def test_github_has_a_line_for_each_the_steps_of_a_plan_as_one(written: dict[str, str]):
    lines = written["github"].splitlines()
    steps = [len(re.findall(r"\b\d+\. [a-z0-9-]+: ", line)) for line in lines if re.search(r"[(\[]plan[)\]]", line)]
    assert steps and min(steps) > 1
    assert len(lines) - len(steps) + sum(steps) == sum(told_by_json(written["json"]).values())


def test_github_has_no_more_than_ten_annotations_of_a_level_in_1024_characters(written: dict[str, str]):
    lines = [line for line in written["github"].splitlines() if line.startswith("::")]
    levels = [line.split(" ", 1)[0] for line in lines]
    assert max(Counter(levels).values()) == 10
    assert levels == sorted(levels, key=["::error", "::warning", "::notice"].index)
    assert all(len(line.split("::", 2)[2].replace("%0A", "\n").replace("%25", "%")) <= 1024 for line in lines)


def test_json_keeps_to_its_schema(written: dict[str, str]):
    schema = json.loads(schema_models.FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(written["json"]))


def test_sarif_keeps_to_the_oasis_schema(written: dict[str, str]):
    validator_of("sarif").validate(json.loads(written["sarif"]))


def test_the_fixes_of_sarif_do_what_the_edits_of_json_do(written: dict[str, str]):
    """Lines and columns of the one are bytes of the other."""
    checked = 0
    for result in json.loads(written["sarif"])["runs"][0]["results"]:
        for change in (c for fix in result.get("fixes", []) for c in fix["artifactChanges"]):
            raw = (
                SAMPLES.parent / change["artifactLocation"]["uri"].replace("configs/", "sample_configs/", 1)
            ).resolve()
            if not raw.is_file():
                continue
            rows = raw.read_text(encoding="utf-8").split("\n")
            edits = [e for e in result["properties"]["fix"]["edits"] if e["file"] == change["artifactLocation"]["uri"]]
            for replacement, edit in zip(change["replacements"], edits, strict=True):
                region = replacement["deletedRegion"]
                before = "\n".join(
                    [*rows[: region["startLine"] - 1], rows[region["startLine"] - 1][: region["startColumn"] - 1]]
                )
                assert len(before.encode()) == edit["start"]
                assert replacement.get("insertedContent", {"text": ""})["text"] == edit["text"]
                checked += 1
    assert checked > 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "lora-8b-large-batch.yaml", tmp_path / "a.yaml")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("--output-format", "xml"),
        ("--output-format", "json=r", "--output-format", "xml=s"),
        ("--output-format", "json=r", "--output-format", "sarif=r"),
        ("--output-format", "json", "--output-format", "sarif", "-o", "r"),
    ],
)
def test_formats_that_cannot_be_written_are_told_before_anything_is(folder: Path, arguments: tuple[str, ...]):
    old = (folder / "a.yaml").read_bytes()
    result = check("--fix", *arguments, "a.yaml")
    assert result.exit_code == 2 and "error: " in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.yaml": old}


def test_formats_for_files_and_one_for_the_terminal(folder: Path):
    result = check("--output-format", "json=r.json", "--output-format", "github", "a.yaml")
    assert result.stdout.startswith("::error ")
    assert json.loads((folder / "r.json").read_text())["version"] == 1


def test_the_help_names_every_format():
    *first, last = FORMATS
    assert FORMAT_HELP.startswith(f"{', '.join(first)} or {last}; ")
    refused = CliRunner().invoke(main, ["check", "--output-format", "junit", "run.yaml"])
    said = " ".join(refused.output.split())
    assert refused.exit_code == 2 and said.endswith(f"choose one of {', '.join(FORMATS)}")


def test_a_format_is_a_module_and_a_line_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = SimpleNamespace(render=lambda reports, _style: "\n".join(Path(report.file).name for report in reports))
    monkeypatch.setitem(sys.modules, "advisor.report.files", files)  # pyright: ignore[reportArgumentType]
    monkeypatch.setitem(FORMATS, "names", "files")  # pyright: ignore[reportArgumentType]
    (tmp_path / "advisor.toml").write_text('output-format = "names"\n')
    (tmp_path / "run.yaml").write_text("base_model: x/y\n")
    result = CliRunner().invoke(main, ["check", str(tmp_path / "run.yaml")])
    assert result.output == "run.yaml\n"


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_its_module(name: str):
    assert (Path(schema_models.__file__).with_name(FORMATS[name] + ".py")).is_file()
