"""Twice the input is about twice the work: counted in calls, so that no clock decides."""

import cProfile
import pstats
from collections.abc import Callable

import pytest

from advisor.documents import parse
from advisor.engine.check import Options, lint_hits
from advisor.opening import Context, open_run
from advisor.schemas import spelling

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
