# pyright: basic
"""The picture of a step, and its lines of blocks."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from advisor.allocations.timeline import ALIVE, Timeline, timeline
from advisor.cli.main import main
from advisor.memory import estimate
from advisor.report.style import Style
from advisor.report.timeline import blocks, svg, told
from advisor.run import Run
from advisor.util import GIB

CONFIG = """\
base_model: meta-llama/Llama-3.2-1B
datasets: [{path: some/data, type: alpaca}]
learning_rate: 1e-4
micro_batch_size: 2
gradient_accumulation_steps: 1
sequence_len: 2048
bf16: true
attn_implementation: flash_attention_2
optimizer: adamw_torch
lora_mlp_kernel: false
lora_qkv_kernel: false
lora_o_kernel: false
"""
LORA = "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\ngradient_checkpointing: true\n"
SMALL_BATCH = CONFIG.replace("micro_batch_size: 2", "micro_batch_size: 1").replace("2048", "128")
Made = Callable[[str], Run]


@pytest.fixture
def made(make_run: Callable[..., Run]) -> Callable[[str], tuple[Run, Timeline]]:
    def make(text: str) -> tuple[Run, Timeline]:
        run = make_run(text, gpus="1x a100-80gb")
        return run, timeline(run)

    return make


def test_parts_sum_to_what_is_allocated_and_the_peak_is_the_estimates(made: Callable[[str], tuple[Run, Timeline]]):
    run, found = made(CONFIG)
    estimated = estimate(run)
    assert estimated is not None
    span, peak = found.peak
    assert peak.allocated == pytest.approx(estimated.allocated_peak, rel=0.005)
    assert span.name == "backward"
    assert peak.of("loss") == pytest.approx(estimated.parts["loss"], rel=0.01)
    assert peak.of("optimizer states") == pytest.approx(estimated.parts["optimizer"], rel=0.01)
    assert all(moment.reserved >= moment.allocated for one in found.spans for moment in one.moments)


def test_weights_are_there_from_the_load_on_and_states_from_the_first_step(made: Callable[[str], tuple[Run, Timeline]]):
    _, found = made(CONFIG)
    names = [span.name for span in found.spans]
    assert names == ["load", *2 * ["forward", "backward", "optimizer step"]]
    weights = {moment.of("weights") for span in found.spans[1:] for moment in span.moments}
    assert len(weights) == 1
    states = [span.moments[-1].of("optimizer states") > GIB for span in found.spans]
    assert states == [False, False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (CONFIG + LORA, "the peak is one needle, in the loss"),
        (SMALL_BATCH, "the peak is in the optimizer's step"),
    ],
)
def test_what_the_peak_is_about(made: Callable[[str], tuple[Run, Timeline]], config: str, words: str):
    _, found = made(config)
    assert words in told(found)


def test_the_picture_is_a_drawing_of_every_part_under_the_reserved_line(made: Callable[[str], tuple[Run, Timeline]]):
    run, found = made(CONFIG + LORA)
    assert run.hardware is not None
    drawn = svg(found, "a <run> & more", run.hardware.usable)
    root = ElementTree.fromstring(drawn)
    space = "{http://www.w3.org/2000/svg}"
    titles = {title.text for title in root.iter(f"{space}title")}
    assert titles == set(ALIVE)
    words = [one.text or "" for one in root.iter(f"{space}text")]
    assert "a <run> & more" in words
    assert any(re.match(r"reserved [\d.]+ GiB", one) for one in words)
    assert len(drawn) < 150_000


def test_each_phase_is_a_line_of_blocks(made: Callable[[str], tuple[Run, Timeline]]):
    _, found = made(CONFIG + LORA)
    lines = blocks(found, Style(False, 80, unicode=True))
    rows = [line for line in lines if re.match(r"  (load|forward|backward|optimizer step) ", line)]
    assert len(rows) == len(found.spans)
    assert sum("█" in row for row in rows) >= 1
    plain = "".join(blocks(found, Style(False, 80, unicode=False)))
    assert plain.isascii()


def test_the_command_writes_the_picture_or_says_what_no_tape_covers(tmp_path: Path):
    config, picture = tmp_path / "run.yaml", tmp_path / "step.svg"
    config.write_text(CONFIG + LORA)
    arguments = ["estimate", str(config), "--gpus", "1x a100-80gb", "--timeline", str(picture)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert picture.read_text().startswith("<svg")
    assert "one needle" in result.output.replace("\n", " ")
    config.write_text(CONFIG.replace("optimizer: adamw_torch", "optimizer: lion_8bit"))
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert "the optimizer lion_8bit" in refused.output


def test_a_step_that_cannot_be_replayed_has_no_picture_and_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("advisor.allocations.autograd.autograd.MOST_ALLOCATIONS", 1000)
    (tmp_path / "run.yaml").write_text(CONFIG)
    asked = ["estimate", "--isolated", "--gpus", "1x a100-80gb", str(tmp_path / "run.yaml")]
    result = CliRunner().invoke(main, [*asked, "--timeline", str(tmp_path / "step.svg")])
    assert result.exit_code == 2 and "there is no timeline of this run" in result.stderr
    assert "Error" not in result.stderr and not (tmp_path / "step.svg").exists()
    assert CliRunner().invoke(main, asked).exit_code == 0
