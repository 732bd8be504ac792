"""Settings: which file counts, what overrides it, and what is said of a bad one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import InputError
from advisor.hardware import parse_hardware
from advisor.run.stack import KINDS, Stack
from advisor.settings import ENVIRONMENT, READERS, Settings, load_settings
from advisor.settings.schema import SettingsModel, dashed

EVERYTHING = """\
gpus = "8x a100-80gb"
fail-on = "warning"
select = ["zero-2", "lora"]
ignore = [
    "qlora",  # not here
]
rules = ["ours", "/opt/theirs"]
flowchart = "safe-first"
output-format = "concise"

[per-file-ignores]
"examples/*.yml" = ["lora"]

[stack]
torch = "2.6.0"
trainer = "hf-trainer"
zero_init = false
amp = true
"""
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file below an empty working directory, and gives its folder."""
    monkeypatch.chdir(tmp_path)
    for variable in ENVIRONMENT:
        monkeypatch.delenv(variable, raising=False)

    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path.parent

    return file


def error_of(folder: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load_settings(folder)
    return caught.value


def test_without_a_file_there_are_defaults(write: Write, tmp_path: Path):
    assert load_settings(tmp_path) == Settings()


def test_every_setting_is_read(write: Write):
    folder = write("advisor.toml", EVERYTHING)
    assert load_settings(folder) == Settings(
        gpus="8x a100-80gb",
        fail_on="warning",
        select=("zero-2", "lora"),
        ignore=("qlora",),
        per_file_ignores={"examples/*.yml": ("lora",)},
        rules=(str(folder / "ours"), "/opt/theirs"),
        flowchart="safe-first",
        output_format="concise",
        stack={"torch": "2.6.0", "trainer": "hf-trainer", "zero_init": False, "amp": True},
        file="advisor.toml",
    )


def test_a_table_of_gpus_has_a_default_cards_that_are_owned_and_cards_of_ones_own(write: Write):
    text = '[gpus]\ndefault = "2x Mine"\nowned = ["rtx-4090", "mine"]\n[gpus.Mine]\nmemory = "20GB"\nbf16 = false\n'
    settings = load_settings(write("advisor.toml", text))
    assert (settings.gpus, settings.owned) == ("2x Mine", ("rtx-4090", "mine"))
    hardware = parse_hardware("2x Mine", own=settings.cards)
    assert (hardware.gpu.nominal_gb, hardware.gpu.bf16, hardware.spec) == (20, False, "2x mine")
    assert parse_hardware(hardware.spec, own=settings.cards) == hardware


def test_pyproject_holds_the_same_under_tool_advisor(write: Write):
    headed = EVERYTHING.replace("[per-file", "[tool.advisor.per-file").replace("[stack]", "[tool.advisor.stack]")
    own = load_settings(write("a/advisor.toml", EVERYTHING))
    shared = load_settings(write("b/pyproject.toml", '[project]\nname = "x"\n[tool.advisor]\n' + headed))
    assert shared.file == "b/pyproject.toml"
    for item in fields(Settings):
        if item.name not in {"file", "origins", "rules", "named_rules"}:
            assert getattr(own, item.name) == getattr(shared, item.name)


def test_the_nearest_folder_counts_and_no_other(write: Write, tmp_path: Path):
    write("advisor.toml", 'gpus = "a100"\nflowchart = "pytorch"\n')
    write("team/pyproject.toml", '[tool.advisor]\ngpus = "h100"\n')
    deep = write("team/runs/deep/run.yml", "")
    settings = load_settings(deep)
    assert (settings.gpus, settings.flowchart) == ("h100", "default")
    assert load_settings(tmp_path).gpus == "a100"


def test_advisor_toml_goes_before_pyproject_in_one_folder(write: Write):
    write("pyproject.toml", '[tool.advisor]\ngpus = "h100"\n')
    assert load_settings(write("advisor.toml", 'gpus = "a100"\n')).gpus == "a100"


@pytest.mark.parametrize(
    "text",
    [
        "[project]\nname = 'x'\n",
        "# [tool.advisor] some day\n",
        "[tool.advisory]\nx = 1\n",
        "not toml at all ][",
    ],
)
def test_a_pyproject_without_our_table_is_passed_over(write: Write, text: str):
    write("advisor.toml", 'gpus = "a100"\n')
    assert load_settings(write("inner/pyproject.toml", text)).gpus == "a100"


def test_an_empty_table_still_ends_the_search(write: Write):
    write("advisor.toml", 'gpus = "a100"\n')
    assert load_settings(write("inner/pyproject.toml", "[tool.advisor]\n")).gpus is None


def test_isolated_passes_over_the_file_but_not_the_environment(write: Write, monkeypatch: pytest.MonkeyPatch):
    folder = write("advisor.toml", "this is [ not TOML")
    assert load_settings(folder, isolated=True) == Settings()
    monkeypatch.setenv("ADVISOR_GPUS", "4x l40s")
    assert load_settings(folder, isolated=True).gpus == "4x l40s"


def test_the_environment_goes_before_the_file(write: Write, monkeypatch: pytest.MonkeyPatch):
    folder = write("advisor.toml", EVERYTHING)
    monkeypatch.setenv("ADVISOR_GPUS", "4x l40s")
    monkeypatch.setenv("ADVISOR_FAIL_ON", "note")
    monkeypatch.setenv("ADVISOR_FLOWCHART", "pytorch")
    monkeypatch.setenv("ADVISOR_OUTPUT_FORMAT", "json")
    settings = load_settings(folder)
    assert (settings.gpus, settings.fail_on, settings.flowchart) == ("4x l40s", "note", "pytorch")
    assert settings.output_format == "json"
    assert settings.select == ("zero-2", "lora")


def test_folders_of_rules_in_the_environment_go_before_those_of_the_file(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ADVISOR_RULES", os.pathsep.join([str(tmp_path / "ours"), "/opt/theirs"]))
    settings = load_settings(write("a/advisor.toml", EVERYTHING))
    assert settings.rules == (str(tmp_path / "ours"), "/opt/theirs")
    assert settings.origins["rules"] == ("ADVISOR_RULES", 0)


def test_a_relative_folder_of_rules_in_the_environment_is_an_error(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It would be another one in each folder that is looked at."""
    folder = write("a/advisor.toml", 'rules = ["own"]\n')
    for value in ("ours", "/opt/theirs\nours\n", "~/ours"):
        monkeypatch.setenv("ADVISOR_RULES", value)
        with pytest.raises(InputError, match="`ADVISOR_RULES` has the relative path `.*ours`; set it to an absolute"):
            load_settings(folder)
    heard: list[InputError] = []
    assert load_settings(folder, fault=heard.append).rules == (str(tmp_path / "a" / "own"),)
    assert len(heard) == 1


@pytest.mark.parametrize("value", ["sarif=../x", "full=/tmp/x", "concise="])
def test_a_settings_file_chooses_no_file_to_write(write: Write, value: str):
    settings = load_settings(write("advisor.toml", f'gpus = "t4"\noutput-format = "{value}"\n'))
    assert settings.output_format == value.partition("=")[0]
    assert settings.unused["output_format"].startswith("advisor.toml:2: the `=FILE` of `output-format` is not used")


def test_the_environment_may_name_a_file(write: Write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADVISOR_OUTPUT_FORMAT", "json=out.json")
    assert load_settings(write("advisor.toml", EVERYTHING)).output_format == "json=out.json"


def test_a_file_that_is_not_trusted_only_narrows(write: Write, monkeypatch: pytest.MonkeyPatch):
    folder = write(
        "advisor.toml", f'exclude = ["drafts"]\n{EVERYTHING}\n[models]\n"a/b" = "c/d"\n[flowcharts]\nours = ["lora"]\n'
    )
    trusted = load_settings(folder)
    monkeypatch.setenv("ADVISOR_NARROW", "1")
    settings = load_settings(folder)
    narrows = ("gpus", "fail_on", "ignore", "per_file_ignores", "stack")
    kept = {item.name for item in fields(Settings) if getattr(settings, item.name) == getattr(trusted, item.name)}
    assert kept - {"file", "origins", "named_rules", "cards", "owned"} == set(narrows)
    wider = {
        name: getattr(Settings(), name)
        for name in ("select", "rules", "flowchart", "flowcharts", "output_format", "exclude", "models")
    }
    assert {name: getattr(settings, name) for name in wider} == wider
    assert set(settings.unused) == set(wider)


def test_an_empty_variable_is_none(write: Write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADVISOR_GPUS", "")
    assert load_settings(write("advisor.toml", EVERYTHING)).gpus == "8x a100-80gb"


def test_a_bad_level_in_the_environment_is_named(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADVISOR_FAIL_ON", "loud")
    error = error_of(tmp_path)
    assert str(error) == "`ADVISOR_FAIL_ON` is `loud`; set it to one of error, warning, note"


def test_origins_say_where_a_setting_stands(write: Write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADVISOR_FLOWCHART", "pytorch")
    origins = load_settings(write("advisor.toml", EVERYTHING)).origins
    assert origins["gpus"] == ("advisor.toml", 1)
    assert origins["fail_on"] == ("advisor.toml", 2)
    assert origins["flowchart"] == ("ADVISOR_FLOWCHART", 0)
    assert "file" not in origins


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('\nfail_on = "note"\n', "advisor.toml:2: unknown setting `fail_on`; did you mean `fail-on`?"),
        ("xyz = 1", "advisor.toml:1: unknown setting `xyz`; known keys: gpus, fail-on, select"),
        (
            '[stack]\ntorch = "2.6"\ntransfomers = "5"\n',
            "advisor.toml:3: unknown setting `stack.transfomers`; did you mean `transformers`?",
        ),
        (
            'gpus = "a100"\nfail-on = "loud"',
            "advisor.toml:2: `fail-on` is `loud`; write 'error', 'warning' or 'note'",
        ),
        ("gpus = 8", "advisor.toml:1: `gpus` is `8`; write a string"),
        ("gpus = { default = 8 }", "advisor.toml:1: `gpus.default` is `8`; write a string"),
        ('[gpus]\nowned = "rtx-4090"', "advisor.toml:2: `gpus.owned` is `rtx-4090`; write a list of strings"),
        ('[gpus]\nown = "rtx-4090"', "advisor.toml:2: `gpus.own` is `rtx-4090`; write a table"),
        ("[gpus.mine]\nbf16 = true", "advisor.toml:1: `gpus.mine.memory` is missing; add it"),
        ('[gpus.mine]\nmemory = "lots"', "advisor.toml:2: `gpus.mine.memory` is `lots`, not a size; write for example"),
        ("[gpus.mine]\nmemory = 24", "advisor.toml:2: `gpus.mine.memory` is `24`; write a string"),
        ('[gpus.mine]\nmemory = "24GB"\nsize = 1', "advisor.toml:3: unknown setting `gpus.mine.size`"),
        ('[gpus.mine]\nmemory = "24GB"\nbf16 = 1', "advisor.toml:3: `gpus.mine.bf16` is `1`; write true or false"),
        (
            '[gpus.mine]\nmemory = "24GB"\nbandwidth_gb_s = 0',
            "advisor.toml:3: `gpus.mine.bandwidth_gb_s` is `0`; write a positive number",
        ),
        ('select = "lora"', "advisor.toml:1: `select` is `lora`; write a list of strings"),
        ("ignore = [1]", "advisor.toml:1: `ignore` is `1`; write a string"),
        ("rules = true", "advisor.toml:1: `rules` is `True`; write a list of strings"),
        ("flowchart = []", "advisor.toml:1: `flowchart` is `[]`; write a string"),
        ("output-format = 1", "advisor.toml:1: `output-format` is `1`; write a string"),
        ("per-file-ignores = 1", "advisor.toml:1: `per-file-ignores` is `1`; write a table"),
        (
            '[per-file-ignores]\n"a.yml" = []\n"b.yml" = "lora"',
            "advisor.toml:3: `per-file-ignores.b.yml` is `lora`; write a list of strings",
        ),
        ('stack = "installed"', "advisor.toml:1: `stack` is `installed`; write a table"),
        ("[stack]\n\ntorch = 2.6", "advisor.toml:3: `stack.torch` is `2.6`; write a string"),
        ('stack.amp = "yes"', "advisor.toml:1: `stack.amp` is `yes`; write true or false"),
        (
            'stack = { trainer = "x" }',
            "advisor.toml:1: `stack.trainer` is `x`; write 'axolotl', 'hf-trainer'",
        ),
        ('stack.torch = "newest"', "advisor.toml:1: `stack.torch` is `newest`; write a version such as 2.13.0"),
        ('stack.padding = "none"', "advisor.toml:1: `stack.padding` is `none`; write 'full', 'packed' or 'longest'"),
        ('stack.base_dtype = "fp8"', "advisor.toml:1: `stack.base_dtype` is `fp8`; write 'float32', 'bfloat16'"),
        ("gpus = [\n1,\n", "advisor.toml"),
        ("a = 1\ngpus = = 2", "advisor.toml:2:8: not valid TOML: Invalid value; fix the TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_a_remedy(write: Write, text: str, said: str):
    error = error_of(write("advisor.toml", text))
    assert str(error).startswith(said)
    assert error.remedy


def test_lines_in_pyproject_are_those_of_our_table(write: Write):
    text = '[tool.other]\ngpus = 1\n\n[tool.advisor]\ngpus = 2\n[tool.advisor.stack]\ntorch = "2.6"\n'
    assert error_of(write("pyproject.toml", text)).line == 5
    text = text.replace("gpus = 2", 'gpus = "a100"').replace('"2.6"', "2.6")
    assert error_of(write("pyproject.toml", text)).line == 7


def test_a_broken_pyproject_that_names_us_is_an_error(write: Write):
    error = error_of(write("pyproject.toml", "[tool.advisor]\ngpus ="))
    assert (error.file, error.line) == ("pyproject.toml", 2)


def test_a_file_that_is_not_text_is_an_error(write: Write, tmp_path: Path):
    folder = write("advisor.toml", "")
    (folder / "advisor.toml").write_bytes(b'gpus = "\xff"')
    assert "it is not UTF-8" in error_of(folder).message


def test_a_file_outside_the_working_directory_is_shown_in_full(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = write("config/advisor.toml", "gpus = 1")
    monkeypatch.chdir(write("elsewhere/x", ""))
    assert error_of(folder).file == str(tmp_path / "config" / "advisor.toml")


def test_python_310_without_tomli_says_what_to_install(write: Write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)
    monkeypatch.setitem(sys.modules, "tomli", None)
    assert "pip install tomli" in error_of(write("advisor.toml", 'gpus = "a100"')).remedy


def test_the_model_and_the_plain_settings_agree_field_by_field():
    plain = {item.name: getattr(Settings(), item.name) for item in fields(Settings)}
    del plain["file"], plain["origins"], plain["unused"], plain["named_rules"], plain["cards"], plain["owned"]
    model = SettingsModel.model_construct()
    assert plain == {name: getattr(model, name) for name in SettingsModel.model_fields}
    assert set(READERS) == {item.alias for item in SettingsModel.model_fields.values()} == set(map(dashed, plain))
    stack: Any = SettingsModel.model_fields["stack"].annotation
    assert stack().model_dump() == {name: getattr(Stack(), name) for name in KINDS}


VALUES: tuple[object, ...] = (
    "x",
    "error",
    1,
    1.5,
    True,
    [],
    ["x"],
    [1],
    {},
    {"x": ["y"]},
    {"x": "y"},
    {"torch": "2.6", "amp": False, "padding": "full"},
    {"torch": 2},
    {"trainer": "HF"},
    {"zero_init": "true"},
)


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("key", READERS)
def test_the_model_and_the_plain_reader_accept_the_same_values(key: str, value: object):
    def accepts(read: Callable[[object], object]) -> bool:
        try:
            read(value)
        except (TypeError, ValueError, KeyError):
            return False
        return True

    assert accepts(READERS[key]) == accepts(lambda given: SettingsModel.model_validate({key: given}))


def test_the_json_schema_uses_the_keys_of_the_file():
    schema = SettingsModel.model_json_schema()
    assert set(schema["properties"]) == set(READERS)
    assert schema["additionalProperties"] is False
    assert all("description" in item for item in schema["properties"].values())
    assert json.dumps(schema)


def test_reading_good_settings_imports_no_pydantic(write: Write):
    folder = write("advisor.toml", EVERYTHING)
    code = (
        "import sys\n"
        "from advisor.settings import load_settings\n"
        f"assert load_settings({str(folder)!r}).gpus\n"
        "print(sorted({'pydantic', 'difflib', 'torch', 'advisor.settings.schema'} & set(sys.modules)))\n"
    )
    root = Path(__file__).parents[2]
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"[stack]\naxolotl = {'9' * 5000}\n", 2, "a number has too many digits"),
        (f"select = {'[' * 100_000}\n", 0, "not valid TOML: nested too deeply"),
    ],
)
def test_what_python_itself_cannot_read_is_an_error_of_the_file(write: Write, text: str, line: int, message: str):
    error = error_of(write("advisor.toml", text))
    assert (error.message, error.line) == (message, line)
