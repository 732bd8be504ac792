"""``check --validate``, compared with the real axolotl and DeepSpeed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.engine.examples import failures_of
from advisor.engine.rule import Rule
from advisor.schemas.validate import rules_that_ask

pytestmark = pytest.mark.oracle
pytest.importorskip("axolotl")
pytest.importorskip("deepspeed")

YAML = """\
base_model: meta-llama/Llama-3.1-8B
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
learning_rate: 2e-5
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 1
adapter: lora
lora_r: 16
lora_target_linear: true
"""
JSON = """\
{
  "train_micro_batch_size_per_gpu": "auto",
  "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 2,
    "reduce_bucket_size": 20000000
  }
}
"""


@pytest.mark.parametrize("rule", rules_that_ask().values(), ids=lambda rule: rule.id)
def test_the_real_libraries_say_what_the_examples_promise(rule: Rule):
    assert list(failures_of(rule)) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        ("adapter: lora", "adapter: qlora", [("axolotl-says", "run.yaml", 12)]),
        ("sequence_len: 2048", "warmup_steps: 0.1", [("axolotl-says", "run.yaml", 6)]),
        ("type: alpaca", "type: [1]", [("axolotl-says", "run.yaml", 4)]),
        ("reduce_bucket_size", "reduce_bucket_sise", [("deepspeed-says", "ds.json", 6)]),
        ('"auto"', "4", [("deepspeed-says", "ds.json", 2)]),
    ],
)
def test_a_rejection_is_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, expected: list[tuple[str, str, int]]
):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text((YAML + "deepspeed: ds.json\n").replace(before, after))
    Path("ds.json").write_text(JSON.replace(before, after))
    options = ["--gpus", "2x h100-80gb", "--isolated", "--validate", "--select", "axolotl-says,deepspeed-says"]
    result = CliRunner().invoke(main, ["check", "run.yaml", *options, "--output-format", "json"])
    findings = json.loads(result.stdout)["runs"][0]["findings"]
    found = [(one["rule"], one["location"]["file"], one["location"]["line"]) for one in findings]
    assert found == expected, result.output
    assert result.exit_code == (1 if expected else 0)
