"""Twice the input is about twice the work: counted in calls, so that no clock decides."""

import cProfile
import pstats
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from advisor.documents import parse
from advisor.documents import source as places
from advisor.engine.check import check_run
from advisor.engine.lint import lint_hits
from advisor.engine.options import Options
from advisor.opening import Context, open_run
from advisor.report import render_check, snippet
from advisor.schemas import axolotl_keys, spelling

BASE = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\n"
INPUTS: dict[str, Callable[[int], str]] = {
    "unknown": lambda n: "".join(f"key_{i}_unknown: {i}\n" for i in range(n)),
    "misspelt": lambda n: "".join(f"micro_batch_siz{i}: {i}\n" for i in range(n)),
    "datasets": lambda n: "datasets:\n" + "".join(f"  - {{path: a/b{i}, type: alpaca, foo: 1}}\n" for i in range(n)),
}


def calls(text: str) -> int:
    """Function calls of reading a config and asking every lint rule."""
    profile = cProfile.Profile()
    profile.enable()
    opened = open_run(parse(text.encode(), "run.yaml", "yaml"), Context())
    list(lint_hits(opened.run, Options()))
    opened.run.config.directives  # noqa: B018
    profile.disable()
    return pstats.Stats(profile).total_calls  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownVariableType]


@pytest.mark.parametrize("name", INPUTS)
def test_calls_grow_with_the_lines(name: str):
    calls(BASE)
    small, large = (calls(BASE + INPUTS[name](n)) for n in (200, 400))
    assert large < 2.5 * small


def test_of_many_unknown_keys_the_first_are_searched_for_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch):
    compared: list[str] = []
    true = spelling.distance
    monkeypatch.setattr(spelling, "distance", lambda one, other: compared.append(one) or true(one, other))
    run = open_run(parse((BASE + INPUTS["misspelt"](40_000)).encode(), "run.yaml", "yaml"), Context()).run
    hits = [hit for rule, hit in lint_hits(run, Options(select=("unknown-key",)))]
    assert len(hits) == 51 and hits[-1].message.startswith("39950 more keys")
    assert len(compared) < 1000


@pytest.mark.parametrize("body", ["ignore[" * 100_000, "ignore" + "[" * 500_000, "ignore[" + "a" * 500_000])
def test_a_comment_of_brackets_is_read_in_one_pass(body: str):
    (directive,) = parse(f"{BASE}# advisor: {body}\n".encode(), "run.yaml", "yaml").directives
    assert directive.name == "malformed"


REPORTED: dict[str, Callable[[int], str]] = {
    "unknown keys": INPUTS["unknown"],
    "datasets": INPUTS["datasets"],
    "comments": lambda n: "".join(f"key_{i}_unknown: {i}  # advisor: ignore[unknown-key]\n" for i in range(n)),
    "comments in a row": lambda n: "# advisor: ignore[unknown-key]\n" * n + "some_key: 1\n",
    "unfrozen parameters": lambda n: "unfrozen_parameters:\n" + "".join(f"  - model.layers.{i}.w\n" for i in range(n)),
}


def lines_run(text: str) -> int:
    """Lines of the advisor's own code, and of what it loops over in place, that a check and its report run."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return counted

    opened = open_run(parse(text.encode(), "run.yaml", "yaml"), Context())
    sys.settrace(counted)
    try:
        render_check([check_run(opened, Options())], "full")
    finally:
        sys.settrace(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTED)
def test_a_report_grows_with_the_lines(name: str):
    lines_run(BASE)
    small, large = (lines_run(BASE + REPORTED[name](n)) for n in (200, 400))
    assert large < 2.5 * small


def test_a_text_is_split_once_for_all_findings(monkeypatch: pytest.MonkeyPatch):
    texts: list[str] = []
    true = snippet.re.split
    monkeypatch.setattr(snippet.re, "split", lambda pattern, text: texts.append(text) or true(pattern, text))
    text = BASE + REPORTED["comments"](300)
    opened = open_run(parse(text.encode(), "run.yaml", "yaml"), Context())
    snippet.lines_of.cache_clear()
    report = check_run(opened, Options())
    assert len(report.findings) > 200
    for form in ("full", "json", "gitlab", "sarif"):
        render_check([report], form)
    assert texts.count(text) == 1


def test_a_config_is_walked_once_for_all_rules_and_its_comments_read_once(monkeypatch: pytest.MonkeyPatch):
    walks: list[object] = []
    table = type(axolotl_keys())
    true = table.found_in
    monkeypatch.setattr(table, "found_in", lambda self, values: walks.append(values) or true(self, values))
    config = parse((BASE + INPUTS["unknown"](10)).encode(), "run.yaml", "yaml")
    check_run(open_run(config, Context()), Options())
    assert sum(values is config for values in walks) == 1
    assert config.changed().directives is config.directives


def test_a_key_is_found_without_going_through_the_others(monkeypatch: pytest.MonkeyPatch):
    config = parse((BASE + INPUTS["unknown"](300)).encode(), "run.yaml", "yaml")
    asked: list[object] = []
    true = places.Node.entries.fget
    assert true is not None
    monkeypatch.setattr(places.Node, "entries", property(lambda node: asked.append(node) or true(node)))
    assert [config.key_span(f"key_{i}_unknown") is not None for i in range(300)] == [True] * 300
    assert len(asked) == 1
