"""What is kept quiet, by comment, option or settings, and what is said of an ignore that keeps nothing quiet."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main
from advisor.settings import ENVIRONMENT

RULE = """
from advisor import Example, Hit, Rule
from advisor.documents import Remove

rule = Rule(
    id="%(id)s", stage="lint", title="t", level="error", why="w", source="s", safe=True,
    finds=lambda run: [Hit("%(at)s", "no", (Remove("%(at)s"),))] if run.config.has("%(at)s") else [],
    examples=(Example(before="base_model: gpt2\\n%(at)s: 1", fires=True), Example(before="base_model: gpt2")),
)
"""
YAML = """\
base_model: meta-llama/Llama-3.1-8B
adapter: qlora
seed: 7
debug: x
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two rules of its own, which no key of the YAML but theirs wakes."""
    monkeypatch.chdir(tmp_path)
    for variable in ENVIRONMENT:
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "ours").mkdir()
    for name, at in {"no-seed": "seed", "no-debug": "debug"}.items():
        (tmp_path / "ours" / f"{name.replace('-', '_')}.py").write_text(RULE % {"id": name, "at": at})
    settings()
    trust()
    return tmp_path


def trust() -> None:
    assert CliRunner().invoke(main, ["trust"]).exit_code == 0


def settings(more: str = "") -> None:
    Path("advisor.toml").write_text(f'rules = ["ours"]\n{more}')


def check(text: str = YAML, *options: str, path: str = "run.yaml") -> Result:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    return CliRunner().invoke(main, ["check", path, "--output-format", "concise", *options])


def found(*arguments: str, path: str = "run.yaml") -> set[str]:
    """Which of our two rules spoke, and of comments."""
    output = check(*arguments, path=path).output
    return {rule for rule in ("no-seed", "no-debug", "unused-ignore") if f"[{rule}]" in output}


def test_both_rules_speak():
    assert found() == {"no-seed", "no-debug"}


@pytest.mark.parametrize(
    "text",
    [
        YAML.replace("seed: 7", "seed: 7  # advisor: ignore[no-seed] we want the same data twice"),
        YAML.replace("seed: 7", "# advisor: ignore[no-seed] we want the same data twice\nseed: 7"),
        YAML.replace("seed: 7", "# advisor: ignore[no-seed] because\n# of that\n\nseed: 7"),
        YAML.replace("seed: 7", "# advisor: ignore[no-seed] one\n# advisor: gpus=1x h100\nseed: 7"),
        "# advisor: file-ignore[no-seed] always\n" + YAML,
    ],
    ids=["behind", "above", "above a comment", "above another", "for the file"],
)
def test_a_comment_keeps_one_rule_quiet(text: str):
    assert found(text) == {"no-debug"}


def test_a_comment_on_another_line_keeps_nothing_quiet_and_is_told():
    text = YAML.replace("adapter: qlora", "adapter: qlora  # advisor: ignore[no-seed] misplaced")
    assert found(text) == {"no-seed", "no-debug", "unused-ignore"}
    assert "run.yaml:2:1: warning[unused-ignore]" in check(text).output


def test_a_comment_that_is_not_understood_is_told_under_the_same_id():
    text = YAML + "# advisor: ignored[no-seed]\n"
    assert found(text) == {"no-seed", "no-debug", "unused-ignore"}
    assert "unused-ignore" not in found(text, "--ignore", "unused-ignore")


def test_of_several_rules_in_a_comment_the_idle_one_is_told():
    text = YAML.replace("seed: 7", "seed: 7  # advisor: ignore[no-seed, no-debug] both")
    assert "`no-debug` in `# advisor: ignore[no-seed, no-debug]` matches no finding" in check(text).output
    assert found(text) == {"no-debug", "unused-ignore"}


def test_nothing_is_said_of_a_comment_for_a_rule_that_was_not_asked():
    text = YAML + "# advisor: file-ignore[no-seed] why\n"
    assert found(text, "--ignore", "no-seed") == {"no-debug"}
    assert found(text, "--select", "no-debug") == {"no-debug"}
    assert "unused-ignore" not in found("# advisor: file-ignore[axolotl-says] only with --validate\n" + YAML)


def test_what_a_comment_keeps_quiet_is_not_fixed():
    text = YAML.replace("seed: 7", "seed: 7  # advisor: ignore[no-seed] keep it")
    check(text, "--fix")
    assert "seed: 7" in Path("run.yaml").read_text() and "debug" not in Path("run.yaml").read_text()


def test_select_and_ignore_choose_and_may_repeat_and_list():
    assert found(YAML, "--select", "no-seed") == {"no-seed"}
    assert found(YAML, "--ignore", "no-seed") == {"no-debug"}
    assert found(YAML, "--ignore", "no-seed,no-debug") == set()
    assert found(YAML, "--ignore", "no-seed", "--ignore", "no-debug") == set()
    assert found(YAML, "--select", "no-seed,no-debug", "--ignore", "no-seed") == {"no-debug"}


def test_settings_choose_and_options_go_on_top():
    settings('ignore = ["no-seed"]\n')
    assert found() == {"no-debug"}
    assert found(YAML, "--ignore", "no-debug") == set()
    settings('select = ["no-seed"]\n')
    assert found() == {"no-seed"}
    assert found(YAML, "--select", "no-debug") == {"no-debug"}


@pytest.mark.parametrize("pattern", ["runs/*", "*.yaml", "runs/run.yaml", "*"])
def test_rules_are_left_out_by_file(pattern: str):
    settings(f'[per-file-ignores]\n"{pattern}" = ["no-seed"]\n')
    assert found(path="runs/run.yaml") == {"no-debug"}


def test_a_pattern_is_from_the_settings_on_wherever_the_call_is_made(monkeypatch: pytest.MonkeyPatch, here: Path):
    settings('[per-file-ignores]\n"runs/*" = ["no-seed"]\n')
    assert found(path="other/run.yaml") == {"no-seed", "no-debug"}
    check(path="runs/run.yaml")
    monkeypatch.chdir(here / "runs")
    assert found() == {"no-debug"}
    assert found(path=str(here / "runs" / "run.yaml")) == {"no-debug"}


def test_a_pattern_may_name_the_deepspeed_json():
    settings('[per-file-ignores]\n"ds/*.json" = ["no-seed"]\n')
    Path("ds").mkdir()
    Path("ds/zero.json").write_text('{"zero_optimization": {"stage": 1}}')
    assert found(YAML + "deepspeed: ds/zero.json\n") == {"no-debug"}
    assert found(YAML) == {"no-seed", "no-debug"}


def test_a_pattern_holds_for_the_copy_that_is_written_elsewhere():
    settings('[per-file-ignores]\n"run.yaml" = ["no-seed"]\n')
    check(YAML, "--fix", "--output-dir", "out")
    assert "seed: 7" in Path("out/run.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "line"),
    [('ignore = ["no-sed"]\n', 2), ('select = ["no-sed"]\n', 2), ('\n[per-file-ignores]\n"*" = ["no-sed"]\n', 3)],
)
def test_a_rule_that_settings_misspell_is_an_error_at_its_line(text: str, line: int):
    settings(text)
    result = check()
    assert result.exit_code == 2
    assert f"advisor.toml:{line}" in result.output and "did you mean `no-seed`?" in result.output


def test_a_folder_of_rules_that_is_not_there_is_an_error_at_its_line():
    Path("advisor.toml").write_text('gpus = "h100"\nrules = ["theirs"]\n')
    result = CliRunner().invoke(main, ["trust"])
    assert result.exit_code == 2
    assert "advisor.toml:2" in result.output and "theirs" in result.output
    assert check().exit_code == 1


def test_a_rule_that_raises_is_an_error_at_its_own_line():
    Path("ours/hasty.py").write_text((RULE % {"id": "hasty", "at": "seed"}).replace("config.has", "config.nothing"))
    trust()
    result = check()
    assert result.exit_code == 2
    assert "ours/hasty.py:7" in result.output and "the rule `hasty` failed: AttributeError" in result.output
    assert "Traceback" not in result.output
    assert found(YAML, "--ignore", "hasty") == {"no-seed", "no-debug"}


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_a_folder_without_rules_cannot_be_tested(folder: str):
    Path("empty").mkdir()
    result = CliRunner().invoke(main, ["test", folder])
    assert result.exit_code == 2 and folder in result.output


LARGE = YAML.replace("adapter: qlora\n", "micro_batch_size: 1\nattn_implementation: flash_attention_2\n")


@pytest.mark.parametrize(
    ("selected", "steps"),
    [("no-seed", []), ("does-not-fit", ["fsdp-2"]), ("zero-2,no-seed", ["zero-2"]), ("lora", ["lora"])],
)
def test_a_selection_takes_only_its_own_steps(selected: str, steps: list[str]):
    output = check(LARGE, "--gpus", "8x rtx-4090", "--select", selected).output
    assert re.findall(r"note\[(.*?)\]", output) == steps


def test_a_fix_of_selected_rules_writes_nothing_else():
    check(LARGE, "--gpus", "8x rtx-4090", "--select", "no-seed", "--fix")
    assert Path("run.yaml").read_text() == LARGE.replace("seed: 7\n", "")
