"""The max_value value with which a run fits: it does, and the next one does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.documents import parse
from advisor.engine.max_value import LONGEST, STEP_OF_LENGTH, MaxValue, max_value, searched, with_value
from advisor.memory import estimate
from advisor.opening import Context, LoadedRun, open_run

QLORA = """\
base_model: meta-llama/Llama-3.1-8B
learning_rate: 1e-4
datasets: [{path: a, type: alpaca}]
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
micro_batch_size: 1
gradient_checkpointing: true
attn_implementation: flash_attention_2
"""


def opened(text: str, gpus: str) -> LoadedRun:
    return open_run(parse(text.encode(), "run.yaml", "yaml"), Context(gpus=gpus))


def verdict(run: LoadedRun, key: str, value: int) -> str:
    found = estimate(with_value(run, key, value))
    assert found is not None
    return found.verdict


@pytest.mark.parametrize(("key", "step"), [("sequence_len", STEP_OF_LENGTH), ("micro_batch_size", 1)])
@pytest.mark.parametrize("gpus", ["1x rtx-4090", "1x a100-40gb"])
def test_the_largest_fits_and_the_next_does_not(key: str, step: int, gpus: str):
    run = opened(QLORA, gpus)
    found = max_value(run, key)
    assert found.value is not None and verdict(run, key, found.value) == "fits"
    assert verdict(run, key, found.value + step) != "fits"


def fitting(most: int) -> Callable[[int], MaxValue]:
    """What is found where values fit up to this one."""
    return lambda value: MaxValue(None, value, "fits" if value <= most else "does-not-fit")


@pytest.mark.parametrize(
    ("key", "most", "value"),
    [("sequence_len", 767, 512), ("sequence_len", 768, 768), ("sequence_len", 255, None), ("micro_batch_size", 7, 7)],
)
def test_lengths_go_by_256_tokens_and_batches_by_one(key: str, most: int, value: int | None):
    assert searched(key, fitting(most)).value == value


@pytest.mark.parametrize(("more", "bounded"), [(-1, False), (0, True), (1, True)])
def test_a_search_ends_at_4_million_tokens(more: int, bounded: bool):
    found = searched("sequence_len", fitting(LONGEST + more))
    assert (found.bounded, found.value) == (bounded, LONGEST if bounded else LONGEST - STEP_OF_LENGTH)


def test_where_the_smallest_does_not_fit_there_is_none():
    found = max_value(opened(QLORA.replace("8B", "70B"), "1x rtx-4090"), "micro_batch_size")
    assert found.value is None and found.verdict == "does-not-fit"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(QLORA)
    return tmp_path / "run.yaml"


def said(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["estimate", "run.yaml", "--isolated", *arguments])
    return done.exit_code, done.output


def test_steps_of_the_plan_reach_further_and_leave_the_value_alone(file: Path):
    code, text = said("--max", "sequence_len", "--gpus", "1x rtx-4090", "--output-format", "json")
    found = json.loads(text)
    assert code == 0 and found["with_steps"]["value"] > found["as_written"]["value"]
    assert "shorter-sequences" not in found["with_steps"]["steps"]
    code, text = said("--max", "micro_batch_size", "--gpus", "1x rtx-4090", "--output-format", "json")
    assert code == 0 and "smaller-micro-batch" not in json.loads(text)["with_steps"]["steps"]


def test_the_screen_names_card_value_and_positions(file: Path):
    code, text = said("--max", "sequence_len", "--gpus", "1x rtx-4090")
    assert code == 0 and "largest sequence_len on 1x RTX 4090" in text and "131,072 positions" in text


def test_what_cannot_be_asked_says_what_can(file: Path):
    code, text = said("--max", "lora_r", "--gpus", "1x rtx-4090")
    assert code == 2 and "--max sequence_len" in text
    file.write_text(QLORA.replace("meta-llama/Llama-3.1-8B", "nobody/knows-this"))
    code, text = said("--max", "sequence_len", "--gpus", "1x rtx-4090")
    assert code == 2 and "its model is unknown" in text


def test_exit_code_one_where_nothing_fits_even_with_steps(file: Path):
    file.write_text(QLORA.replace("8B", "405B"))
    code, text = said("--max", "micro_batch_size", "--gpus", "1x t4")
    assert code == 1 and "not even the smallest fits" in text
