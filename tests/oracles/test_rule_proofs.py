"""Each lint rule keeps its proof: the real libraries reject, or accept, its examples, or the cited lines say so."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from advisor.engine.example import Example
from advisor.engine.examples import opened, outcome
from advisor.engine.registry import built_in_rules
from advisor.engine.rule import Proof, Rule
from advisor.run import Run
from advisor.schemas.validate import ask_deepspeed
from advisor.schemas.validate.requests import capabilities, deepspeed_question

from .asking import SPEAKS_OF_WHAT_IS_MISSING, Axolotl, error_rules, whole
from .citations import cited, own_modules

pytestmark = pytest.mark.oracle
pytest.importorskip("deepspeed")
pytest.importorskip("transformers")

RULES = built_in_rules("lint")
# The examples that speak of another version of these are not put to the one that is installed.
ASKED_OF_DEEPSPEED = {"axolotl", "deepspeed", "transformers", "accelerate"}
# Packages that axolotl uses and that need a GPU: their lines are not looked up here.
NOT_INSTALLED = {"bitsandbytes", "cut_cross_entropy", "flash_attn", "liger_kernel", "torchao", "trl"}
TRIED = {"packing-patch-broken"}
"""Errors that no line raises, and that a test of their own brings about: ``test_packing.py``."""
NOT_INSTALLED_HERE = "missing one of ms-amp, transformers-engine or torchao"
"""What axolotl says of fp8 on a machine that has none of them."""
Said = dict[str, str]
Judge = Callable[[Example, Run], Said]


def proven(proof: Proof) -> pytest.MarkDecorator:
    """The rules of one proof."""
    return pytest.mark.parametrize("name", [rule.id for rule in RULES.values() if rule.proof == proof])


@pytest.fixture
def judge(axolotl: Axolotl, tmp_path: Path, name: str) -> Judge:
    """Asks everybody whom it concerns: who rejects the run, with what words."""
    lacking = name in SPEAKS_OF_WHAT_IS_MISSING

    def judged(example: Example, run: Run) -> Said:
        config = dict(run.config) if lacking else whole(run.config)
        found = axolotl.says(config, tmp_path, run.world_size, capabilities(run))
        said = {} if found.ok or NOT_INSTALLED_HERE in found.error else {"axolotl": found.error}
        if run.deepspeed is not None and not ASKED_OF_DEEPSPEED & example.stack.keys():
            question = deepspeed_question(run, run.deepspeed)
            question["arguments"]["sets_micro_batch"] = True  # which the JSON of an example leaves out
            problems = ask_deepspeed.answer(question)["problems"]
            said |= {"deepspeed": str(problems)} if problems else {}
        return said

    return judged


def runs(rule: Rule, folder: Path, *, fires: bool) -> list[tuple[Example, Run]]:
    """The examples in which it fires, or stays silent, as they stand."""
    chosen = [example for example in rule.expanded if example.expects_finding == fires]
    return [(example, run_of(example, folder / str(number))) for number, example in enumerate(chosen)]


def run_of(example: Example, folder: Path) -> Run:
    folder.mkdir()
    return opened(example, folder).run


@proven("rejects")
def test_what_a_rule_calls_rejected_is_rejected(name: str, judge: Judge, tmp_path: Path):
    for example, run in runs(RULES[name], tmp_path, fires=True):
        if not ASKED_OF_DEEPSPEED & example.stack.keys():
            assert judge(example, run), f"nobody rejects\n{run.config.text}"


@proven("rejects")
def test_what_such_a_rule_is_silent_about_is_accepted(name: str, judge: Judge, tmp_path: Path):
    for example, run in runs(RULES[name], tmp_path, fires=False):
        assert judge(example, run) == {} or error_rules(run) - {name}, run.config.text


@proven("accepts")
def test_what_a_rule_calls_accepted_is_accepted(name: str, judge: Judge, tmp_path: Path):
    for example, run in runs(RULES[name], tmp_path, fires=True):
        assert judge(example, run) == {} or name in error_rules(run), run.config.text


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_makes_of_a_config_is_accepted(name: str, judge: Judge, tmp_path: Path):
    for example, run in runs(RULES[name], tmp_path, fires=True):
        if example.after == example.before and RULES[name].proof == "rejects":
            continue  # refused, and left to the user
        after, _ = outcome(RULES[name], run)
        if after is not None and (example.after or example.after_deepspeed):
            assert judge(example, after) == {}, f"{example.after or ''}{example.after_deepspeed or ''}"


@proven("read")
def test_a_rule_that_was_read_cites_what_can_be_read_again(name: str):
    source = RULES[name].source
    assert list(cited(source)) or own_modules(source), f"cites nothing that can be looked up: {source}"


@pytest.mark.parametrize("name", RULES)
def test_cited_lines_are_there(name: str):
    found = list(cited(RULES[name].source))
    assert all(one.version for one in found), f"no version: {RULES[name].source}"
    assert [str(one) for one in found if not is_package(one.package)] == []
    assert [str(one) for one in found if one.is_installed and not one.exists] == []


def is_package(name: str) -> bool:
    """Whether sources can be cited from it."""
    return name in NOT_INSTALLED or (name.isidentifier() and find_spec(name) is not None)


@proven("read")
def test_an_error_that_was_read_cites_the_line_that_stops_the_run(name: str, tmp_path: Path):
    rule = RULES[name]
    if not speaks_of_errors(rule, tmp_path):
        return
    if any(module.startswith("advisor/memory") for module in own_modules(rule.source)):
        return  # the estimate itself: it does not fit
    if name in TRIED:
        return
    found = list(cited(rule.source))
    if found and not any(one.is_installed for one in found):
        pytest.skip(f"not installed: {', '.join(map(str, found))}")
    assert any(one.stops for one in found if one.is_installed), f"nothing is raised in {rule.source}"


def speaks_of_errors(rule: Rule, folder: Path) -> bool:
    """Whether any example ends in an error."""
    hits = [hit for _, run in runs(rule, folder, fires=True) for hit in rule.finds(run)]
    return any((hit.level or rule.level) == "error" for hit in hits)
