"""Models of somebody's own: which published one a name may mean, and the ways to say so."""

from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main
from advisor.models import Architecture, hub, resolve
from advisor.models.fine_tunes import base_of, misspelt


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("my-org/my-qwen2.5-7b-sft", "Qwen/Qwen2.5-7B"),
        ("my-org/Qwen2.5-7B-Instruct-tools", "Qwen/Qwen2.5-7B-Instruct"),
        ("acme/dolphin-9-llama3-8b-x", "meta-llama/Meta-Llama-3-8B"),
        ("./out/llama-3_1-8b-stage-2/", "meta-llama/Llama-3.1-8B"),
        ("acme/Qwen3-30B-A3B-chat", "Qwen/Qwen3-30B-A3B"),
        ("acme/CodeLlama-7b-sql", "codellama/CodeLlama-7b-hf"),
        ("acme/Mistral-7B-v0.3-fr", "mistralai/Mistral-7B-v0.3"),
        ("acme/qwen2-57b", None),
        ("acme/qwen3-30b", None),
        ("acme/my-llama-7b-2", "huggyllama/llama-7b"),
        ("acme/mullama-7b", None),
        ("acme/llama", None),
        ("7b", None),
    ],
)
def test_a_fine_tune_is_asked_about_by_family_and_size(name: str, base: str | None):
    assert base_of(name) == base


def test_a_misspelt_name_is_one_of_the_same_size_and_organisation():
    assert misspelt("Qwen/Qwen2.5-7b-Insruct") == "Qwen/Qwen2.5-7B-Instruct"
    assert misspelt("tencent/Hunyuan-0.6B-Instruct") is None
    assert misspelt("my-org/Qwen2.5-7B") is None


def check(folder: Path, text: str, *options: str) -> Result:
    (folder / "run.yaml").write_text(text)
    arguments = ["check", "--gpus", "1x a100-80gb", "--output-format", "concise", *options, "run.yaml"]
    return CliRunner().invoke(main, arguments)


OWN = "base_model: my-org/my-qwen2.5-7b-sft\nsequence_len: 512\nadapter: lora\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_unknown_model_shows_the_line_to_add(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def unreachable(name: str) -> NoReturn:
        raise OSError(f"no route to {name}")

    monkeypatch.setattr(hub, "from_hub", unreachable)
    said = check(folder, OWN).stdout
    assert "add the line `# advisor: model=Qwen/Qwen2.5-7B`" in said
    assert "--online" in said and "--offline" not in said
    asked = check(folder, OWN, "--online").stdout
    assert "--online" not in asked and "OSError: no route to my-org/my-qwen2.5-7b-sft" in asked


def test_the_line_is_enough(folder: Path):
    assert "unknown-model" not in check(folder, "# advisor: model=Qwen/Qwen2.5-7B\n" + OWN).stdout
    both = "# advisor: model=Qwen/Qwen2.5-7B\n# advisor: gpus=8x h100\n"
    assert "not understood" not in check(folder, both + OWN).stdout


def test_so_is_the_option_and_so_are_the_settings(folder: Path):
    assert "unknown-model" not in check(folder, OWN, "--model-config", "Qwen/Qwen2.5-7B").stdout
    (folder / "advisor.toml").write_text('[models]\n"my-org/my-qwen2.5-7b-sft" = "Qwen/Qwen2.5-7B"\n')
    assert "unknown-model" not in check(folder, OWN).stdout
    assert "unknown-model" in check(folder, OWN.replace("-sft", "-dpo")).stdout


def test_a_line_that_names_nothing_is_said(folder: Path):
    said = check(folder, "# advisor: model=Qwen/Qwen2.5-7B-Insruct\n" + OWN).stdout
    assert "its model `Qwen/Qwen2.5-7B-Insruct` is unknown too" in said
    assert "did you mean `Qwen/Qwen2.5-7B-Instruct`? " in said


def test_what_is_stated_goes_before_what_is_known():
    found = resolve("Qwen/Qwen2.5-7B", model_config="Qwen/Qwen2.5-0.5B")
    assert isinstance(found, Architecture)
    assert (found.name, found.hidden_size) == ("Qwen/Qwen2.5-7B", 896)


def test_how_it_is_stored_is_in_its_own_name():
    found = resolve("my-org/mine-bnb-4bit", model_config="Qwen/Qwen2.5-7B")
    assert isinstance(found, Architecture) and found.quantized == "bitsandbytes"
