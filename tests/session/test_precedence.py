"""Whose word counts in a session: the call's before the settings', what is there before what is written down."""

import sys
from pathlib import Path

import pytest

from advisor.documents import parse
from advisor.errors import InputError
from advisor.hardware import Hardware, parse_hardware
from advisor.record import replace
from advisor.session import RunOptions, Session, session_for
from advisor.session.launched import launched_on
from advisor.session.lenient import lenient_session
from advisor.session.session import on_a_terminal
from advisor.session.stack import stack_for
from advisor.settings import ENVIRONMENT, Settings


def session(options: RunOptions, settings: Settings) -> Session:
    return session_for(["."], options, settings=settings, detects=False)


@pytest.mark.parametrize(
    ("call", "settings", "formats"),
    [((), None, ("full",)), ((), "html", ("html",)), (("json",), "html", ("json",))],
)
def test_the_calls_format_comes_before_that_of_the_settings(
    call: tuple[str, ...], settings: str | None, formats: tuple[str, ...]
):
    assert session(RunOptions(formats=call), Settings(output_format=settings)).formats == formats


def test_level_flowchart_and_selection_of_a_call_replace_those_of_the_settings():
    settings = Settings(fail_on="warning", flowchart="pytorch", select=("lora",))
    own = session(RunOptions(), settings)
    assert (own.fail_on, own.options.flowchart, own.options.select) == ("warning", "pytorch", ("lora",))
    told = session(RunOptions(fail_on="note", flowchart="huggingface", select=("zero-2",)), settings)
    assert (told.fail_on, told.options.flowchart, told.options.select) == ("note", "huggingface", ("zero-2",))


def test_what_a_call_leaves_out_is_left_out_besides_that_of_the_settings():
    found = session(RunOptions(ignore=("lora",)), Settings(ignore=("zero-2",)))
    assert found.options.ignore == ("lora", "zero-2")


class Stream:
    """Standard output with somebody in front of it, or nobody."""

    def __init__(self, seen: bool):
        self.isatty = lambda: seen


@pytest.mark.parametrize(
    ("seen", "variable", "is_person"),
    [(True, "", True), (False, "", False), (True, "CI", False), (True, "PRE_COMMIT", False)],
)
def test_a_person_looks_on_at_a_terminal_outside_ci_and_pre_commit(
    seen: bool, variable: str, is_person: bool, monkeypatch: pytest.MonkeyPatch
):
    for name in ("CI", "PRE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys, "stdout", Stream(seen))
    assert on_a_terminal() == is_person


@pytest.mark.parametrize(
    ("stated", "here", "torch"),
    [(None, False, "2.7.0"), (None, True, "2.8.0"), ("installed", False, "2.8.0"), ("torch=2.9.0", True, "2.9.0")],
)
def test_a_version_is_as_stated_else_as_installed_else_as_in_the_settings(
    stated: str | None, here: bool, torch: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("advisor.session.stack.installed_stack", lambda: {"torch": "2.8.0"})
    assert stack_for(stated, {"torch": "2.7.0"}, here=here).torch == torch


WRITTEN = "# advisor: gpus=2x a100-80gb\nbase_model: gpt2\n"


def doubled(hardware: Hardware) -> Hardware:
    """As many processes as a launcher would start."""
    return replace(hardware, gpus_per_node=2 * hardware.gpus_per_node)


@pytest.mark.parametrize(
    ("stated", "asked", "machine", "title"),
    [
        ("1x h200", "1x h100", "1x rtx-4090", "1x h200"),
        (None, "1x h100", "1x rtx-4090", "1x h100"),
        (None, None, "1x rtx-4090", "2x rtx-4090"),
        (None, None, None, "4x a100-80gb"),
    ],
)
def test_a_launch_is_on_what_is_stated_else_on_this_machine_else_on_what_the_config_says(
    stated: str | None, asked: str | None, machine: str | None, title: str, monkeypatch: pytest.MonkeyPatch
):
    detected = None if machine is None else parse_hardware(machine)
    monkeypatch.setattr("advisor.session.launched.detect", lambda: detected)
    config = parse(WRITTEN.encode(), "run.yaml", "yaml")
    found = launched_on(config, session(RunOptions(gpus=asked), Settings()), doubled, stated=stated)
    assert found is not None and found.title == parse_hardware(title).title


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ENVIRONMENT:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def lenient(folder: Path, settings: str) -> tuple[Session, list[str]]:
    """The session of a launch under these settings, and what is told."""
    told: list[str] = []
    (folder / "advisor.toml").write_text(settings)
    return lenient_session([str(folder / "run.yaml")], RunOptions(), detects=False, tell=told.append), told


def test_a_launch_leaves_out_the_setting_that_cannot_be_used_and_no_other(folder: Path):
    found, told = lenient(folder, 'gpus = "1x h100"\nselect = ["no-such-rule"]\nignore = ["lora"]\n')
    assert (found.context.default_gpus, found.options.ignore, found.options.select) == ("1x h100", ("lora",), ())
    assert len(told) == 1 and "unknown rule `no-such-rule`" in told[0]


def test_a_launch_keeps_the_gpus_where_two_settings_cannot_be_used(folder: Path):
    found, told = lenient(folder, 'gpus = "1x h100"\nselect = ["no-such-rule"]\nignore = ["nor-this"]\n')
    assert (found.context.default_gpus, found.options.ignore) == ("1x h100", ())
    assert len(told) == 1


def test_an_unknown_flowchart_is_left_out_of_a_launch_before_there_is_anything_to_plan(folder: Path):
    found, told = lenient(folder, 'flowchart = "no-such-chart"\n')
    assert found.options.flowchart == "default"
    assert len(told) == 1 and "unknown flowchart `no-such-chart`" in told[0]
    with pytest.raises(InputError, match="unknown flowchart"):
        lenient_session([str(folder / "run.yaml")], RunOptions(flowchart="nor-this"), detects=False, tell=told.append)
