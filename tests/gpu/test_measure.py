"""The measuring script, without a GPU: the matrix, resuming, and a model of two layers on the CPU."""

import importlib.util
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from advisor import estimate, memory
from advisor.opening import open_configs

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import comparing  # noqa: E402
import measure  # noqa: E402
from cases import Case  # noqa: E402

PHASES = ["load", "prepare", "forward and loss", "loss backward", "backward", "optimizer step"]


def written(path: Path, *found: Case, outcome: str = "ok", device: str = "cpu") -> Path:
    settings = measure.Settings(device)
    for case in found:
        result = {"outcome": outcome, "error": None, "allocated_peak": 1000, "memory_limit": None}
        measure.append(path, measure.line_of(case, result, settings))
    return path


def options(path: Path, *more: str) -> list[str]:
    return ["--device", "cpu", "--tiny", "-o", str(path), *more]


def remaining(path: Path, *more: str) -> list[Case]:
    return measure.chosen(measure.parser().parse_args(options(path, *more)))


def test_every_case_of_the_matrix_has_a_name_of_its_own():
    found = cases.matrix()
    assert len(found) > 200
    assert len({case.name for case in found}) == len(found)


@pytest.mark.slow
def test_the_advisor_can_estimate_every_case_of_the_matrix():
    for case in cases.matrix():
        opened = open_configs(
            cases.axolotl_of(case), cases.deepspeed_of(case), gpus="1x h200", stack=cases.stack_of(case, {})
        )
        counted = memory.estimate(opened.run)
        assert counted is not None and counted.allocated_peak > 0, case.name


@pytest.mark.slow
@pytest.mark.parametrize("case", cases.matrix()[::20], ids=lambda case: case.name)
def test_cases_of_the_matrix_are_replayed(case):
    made = estimate(cases.axolotl_of(case), cases.deepspeed_of(case), gpus="1x h200", stack=cases.stack_of(case, {}))
    assert made.allocated_peak > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "changed"),
    [
        (Case(), Case(checkpointing="off")),
        (Case(), Case(optimizer="adamw_torch", sequence_len=512)),
        (Case(sequence_len=16384), Case(sequence_len=16384, liger="loss")),
        (Case(), Case(zero=2)),
        (Case(zero=2), Case(zero=2, offload_optimizer=True)),
        (
            Case(method="lora", checkpointing="off"),
            Case(method="lora", checkpointing="off", lora_targets="qv"),
        ),
        (Case(model="8b", method="lora"), Case(model="8b", method="qlora")),
        (Case(method="lora"), Case(method="lora", eval_batch_size=8)),
        (Case(checkpointing="off", attention="eager"), Case(checkpointing="off", attention="sdpa")),
        (Case(trainer="axolotl", checkpointing="off"), Case(checkpointing="off")),
    ],
)
def test_settings_reach_the_estimate(case: Case, changed: Case):
    peaks = {
        estimate(
            cases.axolotl_of(one), cases.deepspeed_of(one), gpus="1x h200", stack=cases.stack_of(one, {})
        ).allocated_peak
        for one in (case, changed)
    }
    assert len(peaks) == 2


def test_a_limited_case_comes_after_the_same_case_without_a_limit():
    found = cases.matrix()
    limited = [case for case in found if case.cap]
    assert limited
    assert all(found.index(cases.without_limit(case)) < found.index(case) for case in limited)


def test_the_dimensions_give_the_published_parameter_counts():
    for model, count in (("1b", 1_235_814_400), ("3b", 3_212_749_824), ("8b", 8_030_261_248)):
        assert parameters(cases.model_config(Case(model=model))) == count, model


def parameters(config: dict) -> int:
    hidden, wide, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    query, key = heads * config["head_dim"], config["num_key_value_heads"] * config["head_dim"]
    layer = 2 * hidden * query + 2 * hidden * key + 3 * hidden * wide + 2 * hidden
    tables = 1 if config["tie_word_embeddings"] else 2
    return config["num_hidden_layers"] * layer + tables * config["vocab_size"] * hidden + hidden


def test_what_is_in_the_output_is_not_run_again(tmp_path: Path):
    first, second, *rest = remaining(tmp_path / "none.jsonl")
    path = written(tmp_path / "out.jsonl", first)
    written(path, second, outcome="oom")
    assert remaining(path) == rest


def test_an_error_is_run_again_only_when_asked_for(tmp_path: Path):
    first, *rest = remaining(tmp_path / "none.jsonl")
    path = written(tmp_path / "out.jsonl", first, outcome="error")
    assert remaining(path) == rest
    assert remaining(path, "--retry-errors") == [first, *rest]


def test_a_line_of_another_device_does_not_count(tmp_path: Path):
    whole = remaining(tmp_path / "none.jsonl")
    assert remaining(written(tmp_path / "out.jsonl", whole[0], device="cuda")) == whole


def test_a_line_that_was_cut_off_is_dropped_and_its_case_run_again(tmp_path: Path):
    first, second, *rest = remaining(tmp_path / "none.jsonl")
    path = written(tmp_path / "out.jsonl", first, second)
    path.write_bytes(path.read_bytes()[:-40])
    assert remaining(path) == [second, *rest]
    measure.complete(path)
    assert len(path.read_text().splitlines()) == 1
    assert path.read_text().endswith("\n")


def test_no_run_is_begun_without_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measure, "start", lambda case: pytest.fail("a process was started"))
    settings = measure.Settings("cpu", deadline=time.monotonic())
    measure.measure([Case(model="tiny")], tmp_path / "out.jsonl", settings)
    assert not (tmp_path / "out.jsonl").exists()


def test_packages_that_are_missing_leave_their_cases_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    able = measure.possible(cases.matrix(), "cuda")
    assert Case(checkpointing="off") in able
    assert not any(cases.packages(case) for case in able)


@pytest.mark.parametrize(
    ("out", "err", "code", "error"),
    [
        ("", "Traceback\nValueError: no\n\n", 1, "ValueError: no"),
        ("loading\n", "", 3, "exit code 3"),
        ("", "", -9, "killed by SIGKILL"),
    ],
)
def test_a_process_that_says_nothing_is_an_error_in_one_line(out: str, err: str, code: int, error: str):
    assert measure.result_of(out, err, code) == {"outcome": "error", "error": error}


def test_the_last_line_of_a_process_is_its_result():
    assert measure.result_of('noise\n{"outcome": "oom"}\n', "warning", 0) == {"outcome": "oom"}


def test_loss_backward_is_compared_with_the_loss(tmp_path: Path):
    phases = {"forward and loss": 5, "loss backward": 7, "backward": 6}
    line = {"phases": {name: {"allocated_peak": figure} for name, figure in phases.items()}}
    assert comparing.measured_phases(line) == {"forward and loss": 7, "backward": 6}


def test_an_out_of_memory_run_is_compared_by_its_verdict(tmp_path: Path):
    path = written(tmp_path / "out.jsonl", Case(model="8b"), outcome="oom", device="cuda")
    (line, *_) = comparing.compared(measure.lines_of(path))
    assert line.startswith("8b full 1x2048 reentrant sdpa adamw_torch_fused: oom in")
    assert line.endswith("fits")


@pytest.mark.oracle
class TestOnTheCpu:
    @pytest.fixture(autouse=True)
    def _installed(self):
        for package in ("torch", "transformers", "peft", "accelerate"):
            pytest.importorskip(package)

    def test_a_full_run_says_everything(self, tmp_path: Path):
        path = tmp_path / "out.jsonl"
        case = {"model": "tiny", "sequence_len": 64, "eval_batch_size": 2}
        assert measure.main(options(path, "--case", json.dumps(case))) == 0
        (line,) = measure.lines_of(path)
        assert line["outcome"] == "ok", line["error"]
        assert list(line["phases"]) == [*PHASES, "evaluation"]
        assert line["case"] == asdict(Case(**case))
        assert line["versions"]["torch"]
        assert line["allocated_peak"] == max(phase["allocated_peak"] for phase in line["phases"].values())
        assert line["reserved_peak"] is None
        assert line["step_seconds"] > 0
        assert measure.chosen(measure.parser().parse_args(options(path, "--case", json.dumps(case)))) == []

    def test_what_stays_after_each_phase_is_weights_gradients_and_states(self, tmp_path: Path):
        path = tmp_path / "out.jsonl"
        case = {"model": "tiny", "sequence_len": 64, "checkpointing": "off"}
        measure.main(options(path, "--case", json.dumps(case)))
        (line,) = measure.lines_of(path)
        weights = 2 * parameters(cases.model_config(Case(**case)))
        ends = {name: figures["allocated_end"] for name, figures in line["phases"].items()}
        assert ends["load"] == pytest.approx(weights, rel=0.01)
        assert ends["optimizer step"] == pytest.approx(3 * weights, rel=0.01)
        assert ends["backward"] == pytest.approx(4 * weights, rel=0.01)
        assert ends["forward and loss"] > ends["optimizer step"]

    def test_zero_2_adds_master_weights_and_a_bucket(self, tmp_path: Path):
        pytest.importorskip("deepspeed")
        path = tmp_path / "out.jsonl"
        case = {"model": "tiny", "sequence_len": 32, "zero": 2}
        measure.main(options(path, "--case", json.dumps(case)))
        (line,) = measure.lines_of(path)
        assert line["outcome"] == "ok", line["error"]
        elements = parameters(cases.model_config(Case(**case)))
        assert line["phases"]["optimizer step"]["allocated_end"] == pytest.approx(14 * elements, rel=0.01)
        assert line["phases"]["backward"]["allocated_peak"] > 2 * 500_000_000

    def test_the_estimate_is_near_what_the_storages_say(self, tmp_path: Path):
        path = tmp_path / "out.jsonl"
        given = [
            {"model": "tiny", "sequence_len": 256, "checkpointing": "off"},
            {"model": "tiny", "sequence_len": 256, "method": "lora", "checkpointing": "off"},
        ]
        chosen = [part for case in given for part in ("--case", json.dumps(case))]
        measure.main(options(path, *chosen))
        for line in measure.lines_of(path):
            found = comparing.estimated(line, tmp_path)
            assert comparing.peak(found, line) == pytest.approx(line["allocated_peak"], rel=0.05), line["name"]

    def test_a_run_that_cannot_be_built_is_an_error_in_one_line(self, tmp_path: Path):
        path = tmp_path / "out.jsonl"
        measure.main(options(path, "--case", json.dumps({"model": "tiny", "optimizer": "nonsense"})))
        (line,) = measure.lines_of(path)
        assert (line["outcome"], line["failed_in"]) == ("error", "prepare")
        assert line["error"] == "ValueError: no optimizer nonsense"

    def test_a_run_beyond_its_time_limit_is_an_error_and_the_next_one_is_done(self, tmp_path: Path):
        path = tmp_path / "out.jsonl"
        stuck, short = Case(model="tiny", sequence_len=64), Case(model="tiny", sequence_len=32)
        measure.measure([stuck], path, measure.Settings("cpu", time_limit=0.05))
        measure.measure([short], path, measure.Settings("cpu"))
        first, second = measure.lines_of(path)
        assert (first["outcome"], first["error"]) == ("error", "time limit of 0.05 s")
        assert (second["outcome"], second["case"]["sequence_len"]) == ("ok", 32)

    def test_a_run_that_is_cut_off_leaves_no_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(measure, "LEAST_SECONDS", 0.0)
        path = tmp_path / "out.jsonl"
        settings = measure.Settings("cpu", deadline=time.monotonic() + 0.3)
        measure.measure([Case(model="tiny", sequence_len=64)], path, settings)
        assert measure.lines_of(path) == []
