"""One config through every front end: the same verdict, the same bytes."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import advisor
from advisor.cli.main import main
from advisor.engine.finding import Report
from advisor.run.stack import PACKAGES, Stack
from advisor.session import CheckedRun, check_config

CONFIG = """\
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
micro_batch_size: 2
gradient_accumulation_steps: 4
sequence_len: 4096
learning_rate: 2e-4
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
output_dir: out
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
"""
GPUS = "1x rtx-4090"
Bytes = tuple[str, int, int, int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The config alone in the working directory, and axolotl's pins as what is installed."""
    monkeypatch.chdir(tmp_path)
    pins = {name: getattr(Stack(), name) for name in PACKAGES}
    monkeypatch.setattr("advisor.session.stack.installed_stack", lambda: pins)
    (tmp_path / "run.yaml").write_text(CONFIG)
    yield tmp_path


def of_report(report: Report) -> Bytes:
    """Verdict, needed memory and allocated peak."""
    assert report.estimate is not None
    found = report.estimate
    return report.verdict, found.needed.low, found.needed.high, found.allocated_peak


def of_json(text: str) -> Bytes:
    """The same from JSON."""
    output = json.loads(text)
    run = output["runs"][0] if "runs" in output else output
    needed = run["memory"]["needed"]
    return run["verdict"], needed["low"], needed["high"], run["memory"]["allocated_peak"]


def by_check(_: pytest.MonkeyPatch) -> Bytes:
    return of_json(CliRunner().invoke(main, ["check", "--gpus", GPUS, "--output-format", "json", "run.yaml"]).stdout)


def by_estimate(_: pytest.MonkeyPatch) -> Bytes:
    return of_json(CliRunner().invoke(main, ["estimate", "--gpus", GPUS, "--output-format", "json", "run.yaml"]).stdout)


def by_launch(patched: pytest.MonkeyPatch) -> Bytes:
    seen: list[Report] = []

    def looked_at(*given: Any, **named: Any) -> CheckedRun:
        found = check_config(*given, **named)
        seen.append(found.report)
        return found

    patched.setattr("advisor.cli.launch.check_config", looked_at)
    patched.setattr("advisor.cli.launch.become", lambda _tokens: 0)
    CliRunner().invoke(main, ["launch", "--gpus", GPUS, "--", "axolotl", "train", "run.yaml"])
    return of_report(seen[0])


def by_advise(_: pytest.MonkeyPatch) -> Bytes:
    from advisor.plugins.axolotl.advise import advise

    return of_json(CliRunner().invoke(advise, ["run.yaml", "--gpus", GPUS, "--output-format", "json"]).stdout)


def by_plugin(patched: pytest.MonkeyPatch) -> Bytes:
    base = ModuleType("axolotl.integrations.base")
    base.BasePlugin = object  # type: ignore[attr-defined]
    for name in ("axolotl", "axolotl.integrations"):
        patched.setitem(sys.modules, name, ModuleType(name))
    patched.setitem(sys.modules, "axolotl.integrations.base", base)
    patched.delitem(sys.modules, "advisor.plugins.axolotl.plugin", raising=False)
    patched.setattr(sys, "argv", ["axolotl", "train", "run.yaml"])
    # axolotl turns them on before it trains; the other front ends assume so.
    patched.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    from advisor.plugins.axolotl import AdvisorPlugin

    plugin: Any = AdvisorPlugin()
    plugin.register(
        {**yaml.safe_load(CONFIG), "axolotl_config_path": "run.yaml", "advisor": {"gpus": GPUS, "mode": "warn"}}
    )
    return of_report(plugin.checked.report)


def by_api(_: pytest.MonkeyPatch) -> Bytes:
    return of_report(advisor.check("run.yaml", gpus=GPUS))


def by_api_estimate(_: pytest.MonkeyPatch) -> Bytes:
    found = advisor.estimate(yaml.safe_load(CONFIG), gpus=GPUS)
    return found.verdict, found.needed.low, found.needed.high, found.allocated_peak


def by_text(_: pytest.MonkeyPatch) -> Bytes:
    return of_report(advisor.check_text(CONFIG, gpus=GPUS))


FRONT_ENDS: tuple[Callable[[pytest.MonkeyPatch], Bytes], ...] = (
    by_estimate,
    by_launch,
    by_advise,
    by_plugin,
    by_api,
    by_api_estimate,
    by_text,
)


@pytest.fixture(scope="module")
def said_by_check() -> list[Bytes]:
    """Empty until the first test asks."""
    return []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("front_end", FRONT_ENDS, ids=lambda one: one.__name__)
def test_every_front_end_says_the_same(
    front_end: Callable[[pytest.MonkeyPatch], Bytes], monkeypatch: pytest.MonkeyPatch, said_by_check: list[Bytes]
):
    if not said_by_check:
        said_by_check.append(by_check(monkeypatch))
    assert [front_end(monkeypatch)] == said_by_check


@pytest.mark.usefixtures("folder")
def test_python_estimates_what_is_reserved_as_the_command_does():
    found = advisor.estimate("run.yaml", gpus=GPUS)
    said = json.loads(
        CliRunner().invoke(main, ["estimate", "--gpus", GPUS, "--output-format", "json", "run.yaml"]).stdout
    )
    assert found.ranges == said["memory"]["basis"]["ranges"] == "replay"
    assert {"low": found.reserved_peak.low, "high": found.reserved_peak.high} == said["memory"]["reserved_peak"]


@pytest.mark.usefixtures("folder")
def test_a_launch_counts_with_the_installed_stack(monkeypatch: pytest.MonkeyPatch):
    older = {name: getattr(Stack(), name) for name in PACKAGES} | {"transformers": "4.40.0", "peft": "0.10.0"}
    pinned = by_launch(monkeypatch)
    monkeypatch.setattr("advisor.session.stack.installed_stack", lambda: older)
    arguments = ["estimate", "--gpus", GPUS, "--stack", "installed", "--output-format", "json", "run.yaml"]
    assert by_launch(monkeypatch) == of_json(CliRunner().invoke(main, arguments).stdout) != pinned
