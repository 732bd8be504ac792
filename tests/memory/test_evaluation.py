"""The length that evaluation is counted at, in the verdict, the ledger and the advice."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main

QLORA = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "datasets": [{"path": "org/data", "type": "alpaca"}],
    "adapter": "qlora",
    "load_in_4bit": True,
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "learning_rate": 1e-4,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 4,
    "sequence_len": 32768,
    "gradient_checkpointing": True,
    "attn_implementation": "flash_attention_2",
    "plugins": ["axolotl.integrations.liger.LigerPlugin"],
    "liger_fused_linear_cross_entropy": True,
    "evals_per_epoch": 1,
}
SPLIT = {"val_set_size": 0.02}
APART = {"test_datasets": [{"path": "org/data", "split": "test", "type": "alpaca"}]}
SHORT = {"eval_sequence_len": 4096}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(command: str, config: dict[str, object], *options: str) -> str:
    Path("run.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return CliRunner().invoke(main, [command, "run.yaml", "--gpus", "1x rtx-4090", "--isolated", *options]).output


def verdict(config: dict[str, object]) -> str:
    return json.loads(said("estimate", config, "--output-format", "json"))["verdict"]


def test_a_key_without_effect_makes_no_run_fit():
    assert verdict(QLORA | SPLIT) == verdict(QLORA | SPLIT | SHORT) == "does-not-fit"
    assert verdict(QLORA | APART | SHORT | {"pad_to_sequence_len": True}) == "does-not-fit"
    assert verdict(QLORA | APART | SHORT) == "fits"


def test_the_ledger_says_which_length_counts():
    shown = " ".join(said("estimate", QLORA | APART | SHORT, "--ledger").split())
    assert "rows in evaluation are counted at `eval_sequence_len`: 4096" in shown
    assert "rows in evaluation" not in said("estimate", QLORA | SPLIT | SHORT, "--ledger")


@pytest.mark.parametrize(
    ("data", "told"),
    [(APART, "set a shorter `eval_sequence_len`"), (SPLIT, "use `cut_cross_entropy`, which makes no logits there")],
)
def test_no_key_without_effect_is_recommended(data: dict[str, object], told: str):
    shown = " ".join(said("check", QLORA | data, "--select", "eval-peak-exceeds-gpu").split())
    assert told in shown
