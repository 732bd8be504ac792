"""Rows as long as can occur, which the verdict says, and a second estimate at another length."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main

UNPACKED = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "datasets": [{"path": "org/data", "type": "alpaca"}],
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "learning_rate": 1e-4,
    "bf16": True,
    "sequence_len": 4096,
    "micro_batch_size": 4,
    "gradient_checkpointing": True,
}
PACKED = UNPACKED | {"sample_packing": True, "attn_implementation": "flash_attention_2"}
PADDED = UNPACKED | {"pad_to_sequence_len": True}
LENGTH = ("--row-length", "1024")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(command: str, config: dict[str, object], *options: str, gpu: str = "1x a100-40gb") -> tuple[int, str]:
    Path("run.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    found = CliRunner().invoke(main, [command, "run.yaml", "--gpus", gpu, "--isolated", *options])
    return found.exit_code, " ".join(found.output.split())


@pytest.mark.parametrize("gpu", ["1x a100-80gb", "1x a100-40gb", "1x rtx-4090"])
@pytest.mark.parametrize("command", ["check", "estimate"])
def test_the_verdict_says_which_rows_it_rests_on(command: str, gpu: str):
    assert ", for rows of up to 4096 tokens" in said(command, UNPACKED, gpu=gpu)[1]
    for config in (PACKED, PADDED):
        assert "for rows of up to" not in said(command, config, gpu=gpu)[1]


def test_rows_with_images_are_as_long_as_they_are():
    images = UNPACKED | {"base_model": "google/gemma-3-4b-it", "processor_type": "AutoProcessor"}
    words = ", for rows of up to 4096 tokens (longer ones are not cut): "
    assert words in said("check", images)[1]
    assert words in said("check", images | {"pad_to_sequence_len": True})[1]
    assert "not cut" not in said("check", images | {"sample_packing": True})[1]


@pytest.mark.parametrize("command", ["check", "estimate"])
def test_a_second_estimate_changes_no_verdict(command: str):
    code, alone = said(command, UNPACKED)
    assert (code, "rows of 1024 tokens" in alone) == (1, False)
    code, both = said(command, UNPACKED, *LENGTH)
    assert code == 1
    assert "rows of 1024 tokens: fits, " in both


@pytest.mark.parametrize("form", ["concise", "markdown"])
def test_other_formats_have_the_second_estimate_too(form: str):
    assert "rows of 1024 tokens: fits, " in said("check", UNPACKED, *LENGTH, "--output-format", form)[1]


def test_the_second_estimate_is_that_of_a_run_with_shorter_rows():
    shorter = said("estimate", UNPACKED | {"sequence_len": 1024}, "--output-format", "json")[1]
    both = json.loads(said("estimate", UNPACKED, *LENGTH, "--output-format", "json")[1])
    assert both["memory"]["rows"] == {"length": 4096, "origin": "sequence_len", "full": False, "uncut": False}
    assert both["verdict"] == "does-not-fit"
    second = both["row_length"]["memory"]
    assert second["verdict"] == "fits"
    alone = json.loads(shorter)["memory"]
    assert all(second[key] == alone[key] for key in ("allocated_peak", "needed", "reserved_peak"))


@pytest.mark.parametrize(("config", "how"), [(PACKED, "packed"), (PADDED, "padded")])
def test_rows_that_are_packed_or_padded_have_no_second_estimate(config: dict[str, object], how: str):
    assert f"rows are {how} to 4096 tokens" in said("check", config, *LENGTH)[1]
    output = json.loads(said("estimate", config, *LENGTH, "--output-format", "json")[1])
    assert output["row_length"]["memory"] is None


def test_a_row_has_at_least_one_token():
    assert said("check", UNPACKED, "--row-length", "0")[0] == 2
