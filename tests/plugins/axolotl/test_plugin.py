"""The plugin before a run: when it speaks, on which values and GPUs, and that its own faults stop nothing."""

import logging
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from advisor.plugins.axolotl.settings import AdvisorArgs

from advisor.documents import read
from advisor.engine.blocking import NO_BLOCK
from advisor.hardware import Hardware, parse_hardware
from advisor.session import launched

from .conftest import CONFIG

Cfg = Callable[..., dict[str, Any]]
SMALL, ROOMY = {"gpus": "1x rtx-3060"}, {"gpus": "1x h200"}
LARGE = {"micro_batch_size": 64, "sequence_len": 8192}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts GPUs into the machine."""

    def put(text: str, free: int | None = None) -> None:
        found: Hardware = replace(parse_hardware(text), free_bytes=free, source="detected")
        monkeypatch.setattr(launched, "detect", lambda: found)

    return put


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="axolotl.advisor")
    return caplog


def refusal(plugin: Any, cfg: dict[str, Any]) -> str:
    with pytest.raises(SystemExit) as left:
        plugin.register(cfg)
    return str(left.value.code)


def test_a_run_that_does_not_fit_leaves_with_the_ways_out_in_five_lines(plugin: Any, cfg: Cfg):
    said = refusal(plugin, cfg(advisor=SMALL, **LARGE))
    assert said.startswith("advisor: does not fit: ") and len(said.splitlines()) <= 5
    assert all(line.startswith("advisor: ") for line in said.splitlines())
    assert "# advisor: file-ignore[does-not-fit]" in said
    assert "mode: warn" in said


def test_other_local_ranks_leave_with_a_line(plugin: Any, cfg: Cfg, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOCAL_RANK", "3")
    said = refusal(plugin, cfg(advisor=SMALL, **LARGE))
    assert said == "advisor: blocked by does-not-fit; see local rank 0's output"


def test_other_local_ranks_make_no_plan_and_say_nothing_of_settings(
    plugin: Any,
    cfg: Cfg,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log: pytest.LogCaptureFixture,
):
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("only the first rank shows it")

    for name in ("plan.plan_fit", "check.time_of", "check.basis_of"):
        monkeypatch.setattr(f"advisor.engine.{name}", asked)
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("ADVISOR_FAIL_ON", "zzz")
    assert refusal(plugin, cfg(advisor=SMALL, **LARGE)).startswith("advisor: blocked by does-not-fit")
    plugin.register(cfg(advisor=ROOMY))
    assert capsys.readouterr() == ("", "") and not log.records


def test_settings_that_cannot_be_used_are_left_out_and_the_run_is_checked(
    plugin: Any, cfg: Cfg, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
):
    monkeypatch.setenv("ADVISOR_FAIL_ON", "zzz")
    assert "does not fit: " in refusal(plugin, cfg(advisor=SMALL, **LARGE))
    said = "advisor: left out of the settings: `ADVISOR_FAIL_ON` is `zzz`; set it to one of error, warning, note"
    assert [record.getMessage() for record in log.records] == [said]


def test_a_run_that_fits_goes_on_with_its_verdict(plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture):
    plugin.register(cfg(advisor=ROOMY))
    assert re.search(r"\bfits \d+\.\d of 13\d\.\d GiB; \S+ s a step$", log.text, re.MULTILINE)


def test_ranks_after_the_first_say_nothing_of_a_run_that_fits(
    plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LOCAL_RANK", "1")
    plugin.register(cfg(advisor=ROOMY))
    assert not log.records


def test_with_warn_the_verdict_is_said_and_the_run_goes_on(plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture):
    plugin.register(cfg(advisor={**SMALL, "mode": "warn"}, **LARGE))
    assert "does not fit: " in log.text
    assert "does-not-fit" in log.text


def test_a_launch_that_was_not_to_be_blocked_goes_on(
    plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(NO_BLOCK, "1")
    plugin.register(cfg(advisor=SMALL, **LARGE))
    assert "does not fit: " in log.text


@pytest.mark.parametrize("mode", ["off", False])
def test_switched_off_it_is_silent(plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, mode: object):
    plugin.register(cfg(advisor={**SMALL, "mode": mode}, **LARGE))
    assert not log.records
    assert plugin.add_callbacks_pre_trainer(None, None) == []


def test_a_comment_that_ignores_the_finding_lets_the_run_through(plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture):
    plugin.register(cfg("# advisor: file-ignore[does-not-fit] seen to fit\n" + CONFIG, advisor=SMALL, **LARGE))
    assert "does not fit: " in log.text


def test_a_rule_that_is_fatal_blocks_where_memory_suffices(plugin: Any, cfg: Cfg):
    assert "unknown-optimizer" in refusal(plugin, cfg(advisor=ROOMY, optimizer="adamw_torhc"))


@pytest.mark.parametrize(
    "words",
    [
        ["/venv/bin/axolotl", "preprocess", "run.yml"],
        ["/venv/bin/axolotl", "merge-lora", "run.yml"],
        ["/site-packages/axolotl/cli/main.py", "inference", "train"],
        ["/site-packages/axolotl/cli/evaluate.py", "run.yml"],
        ["/home/me/train.py", "train"],
    ],
    ids=lambda words: " ".join(words[-2:]),
)
def test_commands_that_do_not_train_are_left_alone(
    plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, words: list[str]
):
    monkeypatch.setattr(sys, "argv", words)
    plugin.register(cfg(advisor=SMALL, **LARGE))
    assert not log.records
    assert plugin.add_callbacks_pre_trainer(None, None) == []


def test_training_is_known_from_who_calls(plugin: Any, cfg: Cfg, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["/home/me/notebook.py"])
    code = compile("def do_cli(act):\n    return act()\n", "/site-packages/axolotl/cli/train.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    with pytest.raises(SystemExit):
        names["do_cli"](lambda: plugin.register(cfg(advisor=SMALL, **LARGE)))


def test_the_file_is_pointed_into_though_the_command_line_changed_a_value(plugin: Any, cfg: Cfg):
    refusal(plugin, cfg(advisor=SMALL, **LARGE))
    report = plugin.checked.report
    assert {(f.place.file, f.place.line) for f in report.findings if f.rule == "does-not-fit"} == {("run.yml", 2)}
    assert "base_model: ./model" in report.texts["run.yml"]


def test_a_config_without_its_file_is_judged_by_its_values(plugin: Any, cfg: Cfg):
    values = cfg(advisor=SMALL, **LARGE)
    Path("run.yml").unlink()
    assert "does-not-fit" in refusal(plugin, values)


def test_the_document_has_the_values_that_axolotl_has(folder: Path):
    text = "a: 1\nb: {c: 1, d: [1, 2]}\ne: 0.00001\nf: x\n"
    (folder / "some.yml").write_text(text)
    values = {"a": 2, "b": {"c": 1, "d": [1], "g": "new"}, "e": 1e-05, "f": None, "h": None, "i": True}
    from advisor.plugins.axolotl import before_training

    config = before_training.document_of("some.yml", values)
    assert dict(config) == {"a": 2, "b": {"c": 1, "d": [1], "g": "new"}, "e": 1e-05, "i": True}
    assert config.patched().decode() == text, "a command line is written nowhere"


def test_what_axolotl_train_adds_to_the_config_is_no_key_of_it(plugin: Any, cfg: Cfg, folder: Path):
    """``axolotl train`` hands its own options on: axolotl/cli/args.py:38-46@0.19.0."""
    added = {"debug": False, "debug_text_only": False, "debug_num_examples": 0, "shard": False, "prompter": "x"}
    plugin.register(cfg(advisor=ROOMY, **added))
    assert "unknown-key" not in {finding.rule for finding in plugin.checked.report.findings}
    assert plugin.checked.report.findings == plugin_findings(plugin, cfg(advisor=ROOMY))
    (folder / "run.yml").write_text(CONFIG + "shard: true\n")
    plugin.register(cfg(advisor=ROOMY, **added))
    assert [f.place.line for f in plugin.checked.report.findings if f.rule == "unknown-key"] == [19]


def plugin_findings(plugin: Any, values: dict[str, Any]) -> Any:
    plugin.register(values)
    return plugin.checked.report.findings


def test_diffs_hold_only_lines_of_the_file(plugin: Any, cfg: Cfg):
    said = refusal(plugin, cfg(advisor=SMALL, debug=False, shard=False, lora_dropout=0.25, **LARGE))
    fixes = [finding.fix for finding in plugin.checked.report.findings if finding.fix is not None]
    shown = [line for fix in fixes for line in fix.diff.splitlines()]
    assert not [line for line in shown if "shard:" in line or "debug" in line or "0.25" in line]
    assert not [line for line in shown if line.startswith("-") and "64" in line]
    assert shown and "`micro_batch_size`: change on the command line" in said and "debug" not in said


def test_detected_gpus_count_with_what_is_free_of_them(plugin: Any, cfg: Cfg, gpus: Callable[..., None]):
    gpus("1x a100-80gb")
    plugin.register(cfg())
    gpus("1x a100-80gb", free=2 << 30)
    assert "does-not-fit" in refusal(plugin, cfg())


def test_what_is_stated_goes_before_what_is_detected(plugin: Any, cfg: Cfg, gpus: Callable[..., None]):
    gpus("1x a100-80gb", free=2 << 30)
    plugin.register(cfg(advisor=ROOMY))


def test_there_is_a_gpu_for_each_process(
    plugin: Any, cfg: Cfg, gpus: Callable[..., None], monkeypatch: pytest.MonkeyPatch
):
    gpus("8x a100-80gb")
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    plugin.register(cfg())
    assert plugin.checked.report.hardware == "2 nodes of 4x A100-80GB SXM"


def test_contexts_of_ranks_that_came_first_are_not_held_against_a_run(gpus: Callable[..., None], monkeypatch, folder):
    gpus("8x a100-80gb")
    monkeypatch.setenv("WORLD_SIZE", "8")
    hardware = replace(parse_hardware("8x a100-80gb"), free_bytes=70 << 30)
    from advisor.plugins.axolotl import before_training

    found = before_training.scaled(read("run.yml"), hardware)
    assert found.free_bytes == (70 << 30) + 7 * hardware.gpu.context_bytes


def test_expandable_segments_are_what_the_environment_says(plugin: Any, cfg: Cfg, monkeypatch: pytest.MonkeyPatch):
    plugin.register(cfg(advisor=ROOMY))
    assert plugin.checked.run.stack.expandable_segments is False
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    plugin.register(cfg(advisor=ROOMY))
    assert plugin.checked.run.stack.expandable_segments is True


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"advisor": {"gpus": "1x nothing"}}, "unknown GPU"),
        ({"advisor": {"mode": "loud"}}, "ValidationError"),
        ({"advisor": "block"}, "ValidationError"),
        ({"advisor": False}, "ValidationError"),
        ({"deepspeed": "ds.json", "advisor": ROOMY}, "ds.json:1"),
    ],
)
def test_its_own_trouble_is_a_line_and_stops_nothing(
    plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, values: dict[str, Any], said: str
):
    Path("ds.json").write_text("{")
    plugin.register(cfg(**values))
    (record,) = log.records
    assert "not checked" in record.getMessage()
    assert said in record.getMessage()
    assert "\n" not in record.getMessage()
    assert plugin.add_callbacks_pre_trainer(None, None) == []


def test_a_trouble_of_all_ranks_is_said_once(
    plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LOCAL_RANK", "1")
    plugin.register(cfg(advisor={"gpus": "1x nothing"}))
    assert not log.records


@pytest.mark.parametrize("trouble", [SystemExit(3), ValueError("x")])
def test_nothing_inside_the_check_ends_a_training(
    plugin: Any, cfg: Cfg, monkeypatch: pytest.MonkeyPatch, trouble: BaseException
):
    """Whatever a launcher calls the ranks."""

    def fails(*_: object) -> None:
        raise trouble

    monkeypatch.setenv("LOCAL_RANK", "node-a")
    monkeypatch.setattr("advisor.plugins.axolotl.before_training.checked", fails)
    plugin.register(cfg(advisor=SMALL))


def test_an_internal_error_stops_nothing(
    plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any, **__: Any) -> None:
        raise RecursionError("deep")

    from advisor.plugins.axolotl import before_training

    monkeypatch.setattr(before_training, "check_config", broken)
    plugin.register(cfg(advisor=SMALL))
    assert [record.getMessage() for record in log.records] == ["not checked: RecursionError: deep"]


def test_an_unknown_model_and_unknown_hardware_block_nothing(plugin: Any, cfg: Cfg, log: pytest.LogCaptureFixture):
    plugin.register(cfg(base_model="nobody/nothing", advisor=SMALL))
    plugin.register(cfg(**LARGE))
    assert log.text.count("no verdict") == 2
    unknown = log.records[0].getMessage()
    assert unknown.startswith("no verdict: unknown model `nobody/nothing`\nIf it is a fine-tune, add a line")
    assert "--model-config" not in unknown  # axolotl has no such option


def test_the_key_of_the_plugin_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"advisor\.gpu"):
        AdvisorArgs.model_validate({"advisor": {"gpu": "1x h200"}})
    assert AdvisorArgs.model_validate({"bf16": True}).advisor is None
    assert AdvisorArgs.model_validate(yaml.safe_load("advisor: {mode: off}")).advisor.mode == "off"


@pytest.mark.slow
def test_the_check_loads_no_torch(folder: Path):
    """So it cannot initialise CUDA."""
    stand_in = folder / "stand_in" / "axolotl" / "integrations"
    stand_in.mkdir(parents=True)
    (stand_in / "base.py").write_text("class BasePlugin: ...\n")
    (stand_in / "__init__.py").touch()
    (stand_in.parent / "__init__.py").touch()
    command = (
        "import sys; sys.argv = ['axolotl', 'train', 'run.yml']\n"
        "from advisor.plugins.axolotl import AdvisorPlugin\n"
        "import yaml\n"
        "plugin = AdvisorPlugin()\n"
        "plugin.register({**yaml.safe_load(open('run.yml')), 'axolotl_config_path': 'run.yml',"
        " 'advisor': {'gpus': '1x h200'}})\n"
        "print(plugin.checked.report.verdict, *sorted({'torch', 'transformers', 'accelerate'} & sys.modules.keys()))\n"
    )
    environment = {"PYTHONPATH": str(folder / "stand_in"), "PATH": "", "XDG_STATE_HOME": str(folder)}
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["fits"]


@pytest.mark.parametrize("rank", ["0", "3"])
def test_rules_of_the_folder_are_not_run_and_the_first_rank_says_so(
    folder: Path,
    plugin: Any,
    cfg: Cfg,
    log: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rank: str,
):
    monkeypatch.setenv("LOCAL_RANK", rank)
    (folder / "house").mkdir()
    (folder / "house" / "house_rule.py").write_text("open('ran', 'w').close()\n")
    (folder / "advisor.toml").write_text('rules = ["house"]\n')
    plugin.register(cfg(advisor=ROOMY))
    assert not (folder / "ran").exists()
    assert log.text.count("are not run") == (rank == "0") and "are not run" not in capsys.readouterr().err
