"""How well an estimate is founded, in a word."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.memory import estimate
from advisor.memory.basis import Basis, basis_of
from advisor.opening import open_configs


def basis(**config: Any) -> Basis:
    run = open_configs(config, None, "8x h100").run
    found = estimate(run)
    assert found is not None and run.model is not None
    return basis_of(run, run.model, found)


@pytest.mark.parametrize(
    "model",
    [
        "meta-llama/Llama-3.1-8B",
        "Qwen/Qwen3-30B-A3B",
        "nvidia/Nemotron-H-4B-Base-8K",
        "google/gemma-4-E2B-it",
    ],
)
def test_families_that_an_oracle_compares_are_exact(model: str):
    assert basis(base_model=model) == Basis("exact")


@pytest.mark.parametrize(
    ("config", "what", "remedy"),
    [
        ({"base_model": "facebook/opt-350m"}, "not compared", "--trace"),
        ({"base_model": "Qwen/Qwen3-8B", "optimizer": "optimi_adamw"}, "optimi_adamw", "measure"),
        ({"base_model": "Qwen/Qwen3-VL-8B-Instruct", "processor_type": "AutoProcessor"}, "assumed", "--images"),
        ({"base_model": "google/gemma-4-12B-it", "processor_type": "AutoProcessor"}, "images or sound", "measure"),
        ({"base_model": "google/gemma-4-E2B-it", "processor_type": "AutoProcessor"}, "one clip", "measure"),
    ],
)
def test_what_is_approximate_is_named_with_what_can_be_done(config: Any, what: str, remedy: str):
    found = basis(**config)
    assert found.kind == "approximate"
    assert any(what in part.what and remedy in part.remedy for part in found.parts)


def test_a_tower_that_sees_no_images_is_no_doubt():
    assert not any("vision" in part.what for part in basis(base_model="Qwen/Qwen3-VL-8B-Instruct").parts)


def test_the_screen_and_the_json_say_it(tmp_path: Any):
    file = tmp_path / "run.yaml"
    file.write_text("base_model: facebook/opt-350m\n")
    call = ["estimate", str(file), "--gpus", "1x h100", "--isolated"]
    assert "basis approximate:" in CliRunner().invoke(main, call).output
    said = json.loads(CliRunner().invoke(main, [*call, "--output-format", "json"]).output)
    assert said["memory"]["basis"]["kind"] == "approximate" and said["memory"]["basis"]["parts"][0]["remedy"]
