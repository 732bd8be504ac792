"""Values that nobody means are refused at their place, or taken as they are; none is a traceback or a hang."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main
from advisor.run.axolotl.reader import as_integer
from advisor.util import divisors

DATA = "datasets: [{path: tatsu-lab/alpaca, type: alpaca}]\nlearning_rate: 1e-5\n"
CONFIG = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 2\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*options: str) -> Result:
    return CliRunner().invoke(main, ["check", "--isolated", "--gpus", "2x a100-40gb", *options], catch_exceptions=False)


@pytest.mark.parametrize(
    "line",
    [
        f"sequence_len: 1{'0' * 400}",
        "sequence_len: ²192",
        "sequence_len: '+-5'",
        "sequence_len: 1e300",
        "micro_batch_size: 18446744073709551616",
        f"adapter: lora\nlora_alpha: 1{'0' * 400}",
        "deepspeed: {zero_optimization: true}",
        "deepspeed: {bf16: auto}",
    ],
)
def test_a_value_beyond_reason_is_refused_at_its_place(folder: Path, line: str):
    rest = "".join(row for row in CONFIG.splitlines(True) if not line.startswith(row.partition(":")[0]))
    (folder / "run.yaml").write_text(f"{line}\n{rest}")
    for options in ((), ("--fix",)):
        result = check(*options, "run.yaml")
        assert result.exit_code == 1 and "run.yaml:" in result.output
        said = ("[unreadable-value]", "[wrong-type]", "[deepspeed-auto-ignored]")
        assert any(words in result.output for words in said)
        assert "Does not start" in result.output and "Does not fit" not in result.output


def test_a_learning_rate_beyond_every_float_is_no_rate(folder: Path):
    rate = DATA.replace("1e-5", "9" * 400)
    (folder / "run.yaml").write_text(f"{CONFIG}optimizer: adamw_torch\n{rate}")
    assert check("run.yaml").exit_code == 1


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody-of-that-name/model", "a\\0b", "..", "/"])
def test_a_model_that_is_no_path_is_not_known(folder: Path, name: str):
    (folder / "run.yaml").write_text(f'base_model: "{name}"\n{DATA}')
    result = check("run.yaml")
    assert result.exit_code == 0 and "unknown model" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "change", [{"hidden_size": 0}, {"num_hidden_layers": 0}, {"vocab_size": 10**400}, {"intermediate_size": True}]
)
def test_a_model_without_a_size_is_not_known(folder: Path, change: dict[str, object]):
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 1000,
    }
    (folder / "run.yaml").write_text("base_model: .\n")
    (folder / "config.json").write_text(json.dumps(config))
    assert "unknown-model" not in check("run.yaml").output
    (folder / "config.json").write_text(json.dumps(config | change))
    assert "unknown-model" in check("run.yaml").output


def test_a_config_json_nested_without_end_is_not_known(folder: Path):
    (folder / "run.yaml").write_text("base_model: .\n")
    (folder / "config.json").write_text("[" * 100_000)
    assert "unknown-model" in check("run.yaml").output


@pytest.mark.slow
def test_a_huge_batch_is_planned_for(folder: Path):
    """Its divisors are found without counting up to it."""
    (folder / "run.yaml").write_text(CONFIG.replace("micro_batch_size: 2", f"micro_batch_size: {2**40}"))
    assert check("run.yaml").exit_code == 1


def test_an_edit_that_would_put_a_bad_value_in_force_is_not_made(folder: Path):
    (folder / "run.yaml").write_text(CONFIG + "deepspeed: ds.json\n")
    text = '{"zero_optimisation": {"stage": -1}, "train_micro_batch_size_per_gpu": "auto"}'
    (folder / "ds.json").write_text(text)
    result = check("--fix", "--unsafe-fixes", "run.yaml")
    assert result.exit_code in (0, 1) and "must be at least" not in result.output


def test_one_bad_run_does_not_keep_the_others_from_being_told(folder: Path):
    (folder / "bad.yaml").write_text("base_model: x/y\nmicro_batch_size: [two\n")
    (folder / "run.yaml").write_text(CONFIG)
    result = check("--output-format", "json", "bad.yaml", "run.yaml")
    assert result.exit_code == 2 and "bad.yaml:3:1" in result.stderr
    assert [run["file"] for run in json.loads(result.stdout)["runs"]] == ["run.yaml"]


@pytest.mark.parametrize(
    ("text", "number"), [("2", 2), (" +7 ", 7), ("-3", -3), ("²", None), ("+-3", None), ("9" * 20, None), ("1_0", None)]
)
def test_a_string_counts_as_an_integer_only_if_it_is_one(text: str, number: int | None):
    assert as_integer(text) == number


@pytest.mark.parametrize("number", [1, 2, 12, 49, 97, 360, 1024])
def test_divisors_are_all_of_them_in_order(number: int):
    assert divisors(number) == [n for n in range(1, number + 1) if number % n == 0]
