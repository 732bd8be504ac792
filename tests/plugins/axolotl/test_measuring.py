"""The peaks of a run: the running maximum across axolotl's resets, and what is said and kept at the end."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from advisor.run.history import MeasuredRun, append, measured_here, path, read_lines
from advisor.util import GIB


class Counters:
    """torch's counters of one GPU."""

    def __init__(self) -> None:
        self.allocated = self.reserved = 0
        self.used = True

    def use(self, gib: float) -> None:
        self.allocated = max(self.allocated, round(gib * GIB))
        self.reserved = max(self.reserved, round(1.1 * gib * GIB))

    def reset(self) -> None:
        """As axolotl does with each log."""
        self.allocated = self.reserved = 0

    @property
    def torch(self) -> ModuleType:
        torch = ModuleType("torch")
        torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
            is_initialized=lambda: self.used,
            max_memory_allocated=lambda: self.allocated,
            max_memory_reserved=lambda: self.reserved,
        )
        return torch


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Counters]:
    caplog.set_level(logging.INFO, logger="axolotl.advisor")
    found = Counters()
    transformers = ModuleType("transformers")
    transformers.TrainerCallback = type("TrainerCallback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.setitem(sys.modules, "torch", found.torch)
    monkeypatch.delitem(sys.modules, "advisor.plugins.axolotl.callback", raising=False)
    yield found
    sys.modules.pop("advisor.plugins.axolotl.callback", None)


@pytest.fixture
def registered(plugin: Any, cfg: Any, counters: Counters, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin on a detected H200."""

    from advisor.hardware import parse_hardware
    from advisor.session import launched

    found = replace(parse_hardware("1x h200"), source="detected")
    monkeypatch.setattr(launched, "detect", lambda: found)
    plugin.register(cfg())
    return plugin


def train(plugin: Any, counters: Counters, *peaks: float, first: bool = True, steps: int | None = None) -> Any:
    """The hooks in the order in which axolotl and transformers call them, a log after each step."""
    counters.use(1)
    plugin.post_model_build(None, None)
    counters.reset()
    plugin.post_model_load(None, None)
    (watch,) = plugin.add_callbacks_pre_trainer(None, None)
    state = SimpleNamespace(is_world_process_zero=first, global_step=len(peaks) if steps is None else steps)
    watch.on_train_begin(None, state, None)
    for peak in peaks:
        counters.use(peak)
        watch.on_step_end(None, state, None)
        counters.reset()
    watch.on_train_end(None, state, None)
    return watch


def test_the_maximum_outlives_every_reset(registered: Any, counters: Counters):
    watch = train(registered, counters, 2, 7, 3)
    assert watch.peaks.allocated == 7 * GIB
    assert watch.peaks.reserved == round(1.1 * 7 * GIB)


def test_the_peak_of_loading_counts(registered: Any, counters: Counters):
    counters.use(9)
    assert train(registered, counters, 2, 3).peaks.allocated == 9 * GIB


def test_the_peak_of_an_evaluation_counts(registered: Any, counters: Counters):
    (watch,) = registered.add_callbacks_pre_trainer(None, None)
    counters.use(8)
    watch.on_prediction_step(None, None, None)
    counters.reset()
    watch.on_step_end(None, None, None)
    assert watch.peaks.allocated == 8 * GIB


def test_the_end_says_predicted_against_actual_and_keeps_it(registered: Any, counters: Counters, caplog: Any):
    train(registered, counters, 2, 7)
    estimate = registered.checked.report.estimate
    off = estimate.allocated_peak / (7 * GIB) - 1
    assert f"peak 7.0 GiB allocated, {estimate.allocated_peak / GIB:.1f} GiB foreseen ({off:+.1%})" in caplog.text
    (line,) = path().read_text().splitlines()
    said = json.loads(line)
    assert said["kind"] == "QLoRA, one GPU, checkpointing"
    assert (said["gpu"], said["gpus"], said["steps"]) == ("h200", 1, 2)
    assert (said["allocated"], said["reserved"]) == (7 * GIB, round(7.7 * GIB))
    assert str(path()) in caplog.text


def test_the_end_says_how_fast_the_first_steps_were(
    registered: Any, counters: Counters, caplog: Any, monkeypatch: pytest.MonkeyPatch
):
    """The first step and an evaluation between two steps do not count."""
    from advisor.plugins.axolotl import callback

    ends = iter([10.0, 12.0, 14.0, 30.0, 32.0])
    monkeypatch.setattr(callback.time, "monotonic", lambda: next(ends))
    train(registered, counters, 2, 7, 7, 7, 7)
    run = registered.checked.opened.run
    tokens = run.tokens * run.gradient_accumulation_steps / 2.0
    assert "2.00 s a step, " in caplog.text and f"foreseen; {tokens:,.0f} tokens a second on each GPU" in caplog.text
    assert json.loads(path().read_text())["tokens_per_second_per_gpu"] == tokens


def test_nothing_that_is_kept_names_a_file_or_a_model(registered: Any, counters: Counters):
    train(registered, counters, 2, 7)
    assert "model" not in path().read_text()
    assert "/" not in path().read_text()


def test_a_callback_that_ends_twice_keeps_a_run_once(registered: Any, counters: Counters):
    watch = train(registered, counters, 2, 7)
    watch.on_train_end(None, SimpleNamespace(is_world_process_zero=True, global_step=2), None)
    assert len(path().read_text().splitlines()) == 1


@pytest.mark.parametrize("change", ["other rank", "one step", "not to be kept", "stated GPUs", "no GPU"])
def test_what_is_not_kept(registered: Any, counters: Counters, cfg: Any, change: str, caplog: pytest.LogCaptureFixture):
    match change:
        case "other rank":
            train(registered, counters, 2, 7, first=False)
        case "one step":
            train(registered, counters, 2, 7, steps=1)
        case "not to be kept":
            registered.register(cfg(advisor={"record": False}))
            train(registered, counters, 2, 7)
        case "stated GPUs":
            registered.register(cfg(advisor={"gpus": "1x h200"}))
            train(registered, counters, 2, 7)
        case _:
            counters.used = False
            train(registered, counters, 2, 7)
            assert "nothing measured" in caplog.text
    assert not path().exists()


def test_a_state_folder_that_cannot_be_written_is_a_line(
    registered: Any, counters: Counters, folder: Path, caplog: pytest.LogCaptureFixture
):
    (folder / "state").write_text("a file where a folder should be")
    train(registered, counters, 2, 7)
    assert "not measured: " in caplog.records[-1].getMessage()


def test_broken_counters_are_said_once_and_stop_nothing(
    registered: Any, counters: Counters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    plugin, torch = registered, ModuleType("torch")
    (watch,) = plugin.add_callbacks_pre_trainer(None, None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    caplog.clear()
    state = SimpleNamespace(is_world_process_zero=True, global_step=3)
    watch.on_train_begin(None, state, None)
    for _ in range(3):
        watch.on_step_end(None, state, None)
    watch.on_train_end(None, state, None)
    (record,) = caplog.records
    assert record.getMessage().startswith("not measured: AttributeError")
    assert not path().exists()


RUN = MeasuredRun("LoRA, DDP, checkpointing", "h200", 2, True, 10, 10, 11, 100, "2.13.0")


def test_a_line_that_is_not_a_run_is_passed_over():
    append(RUN)
    with path().open("ab") as file:
        file.write(b'{"kind": "LoRA"}\n[]\n\xff\xfe\nnull\n{"kind": ')
    append(RUN)
    whole = json.loads(path().read_bytes().splitlines()[0])
    with path().open("ab") as file:
        for wrong in ({"gpus": "2"}, {"allocated": 0}, {"reserved": 1}, {"expandable": 1}):
            file.write(json.dumps({**whole, **wrong}).encode() + b"\n")
    assert measured_here() == (RUN, RUN)


def test_without_a_file_nothing_was_measured():
    assert measured_here() == ()


def test_of_a_long_file_the_latest_runs_count():
    path().parent.mkdir(parents=True)
    append(RUN)
    line = path().read_bytes()
    path().write_bytes(line.replace(b"100", b"1") * 2000 + line)
    found = measured_here()
    assert found[-1] == RUN
    assert 100 < len(found) < 1000


@pytest.mark.slow
def test_processes_that_append_at_once_lose_nothing(folder: Path):
    command = (
        "from advisor.run.history import MeasuredRun, append\n"
        "for number in range(50): append(MeasuredRun('k' * 5000, 'h200', 1, True, 1, 1, 1, number, '2'))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", command]) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(list(read_lines(path().read_bytes().splitlines()))) == 200


def test_a_file_that_another_holds_is_waited_for(folder: Path):
    import fcntl

    append(RUN)
    with path().open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = "from advisor.run.history import *; append(MeasuredRun('k', 'h200', 1, True, 1, 1, 1, 1, '2'))"
        writer = subprocess.Popen([sys.executable, "-c", command])
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(1)
        assert len(path().read_bytes().splitlines()) == 1
    assert writer.wait() == 0
    assert len(path().read_bytes().splitlines()) == 2
