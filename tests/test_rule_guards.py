"""Each clause of a rule decides: without it, some example of the rule does not do as it says."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.engine.registry import STAGES, built_in_folder, built_in_rules, load_rule
from advisor.engine.rule import Rule

from .guards import Guarded

RULES = [rule for stage in STAGES for rule in built_in_rules(stage).values()]
SECTION = "a run has ZeRO only with a section; the types ask"
BOTH = "both estimates are there, or neither is; the types ask"
HARDWARE = "an estimate is made with hardware alone; the types ask"
EQUIVALENT: Mapping[str, str] = {
    "allgather-bucket-no-effect: finds: without `section is None`": SECTION,
    "deepspeed-batch-mismatch: finds: without `section is None`": SECTION,
    "deepspeed-batch-missing: finds: without `section is None`": SECTION,
    "deepspeed-single-gpu: finds: without `found is None`": BOTH,
    "deepspeed-single-gpu: finds: without `plain is None`": BOTH,
    "does-not-fit: finds: without `run.hardware is not None`": HARDWARE,
    "gather-on-save: finds: without `section is None`": SECTION,
    "gradient-clipping-off: finds: without `section is None`": SECTION,
    "initial-scale-power: scales_dynamically: without `section is None`": SECTION,
    "optimizer-in-deepspeed-json: finds: without `section is None`": SECTION,
    "precision-mismatch: contradictions: without `section is None`": SECTION,
    "tight-fit: finds: without `run.hardware is not None`": HARDWARE,
    "zero-raises-memory: finds: without `found is None`": BOTH,
    "zero-raises-memory: finds: without `plain is None`": BOTH,
    "zero3-loads-fp32: finds: without `section is None`": SECTION,
    "zero3-prefetch-disabled: finds: without `section is None`": SECTION,
}
"""Clauses without which a rule is the same, and why they stand there all the same."""
OPEN = frozenset(Path(__file__).with_name("rule_guards_open.txt").read_text(encoding="utf-8").splitlines())
"""Clauses that no example shows yet. Nothing is added here: a new clause comes with its example."""


def file_of(rule: Rule) -> Path:
    return built_in_folder() / rule.stage / f"{rule.id.replace('-', '_')}.py"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_some_example_fails_without_each_clause(rule: Rule):
    survivors = set(Guarded(rule, file_of(rule)).survivors())
    excused = {clause for clause in OPEN | EQUIVALENT.keys() if clause.startswith(f"{rule.id}: ")}
    lacking = sorted(survivors - excused)
    assert not lacking, "\n".join(["give an example that fails", *lacking])
    stale = sorted(excused - survivors)
    assert not stale, "\n".join(["an example fails, so take it off the list", *stale])


def test_only_rules_that_exist_are_excused():
    ids = {rule.id for rule in RULES}
    assert {clause.partition(": ")[0] for clause in OPEN | EQUIVALENT.keys()} <= ids
    assert not OPEN & EQUIVALENT.keys()


GUARDED = """
from advisor import Example, Hit, Rule


def finds(run):
    if run.rl is not None or run.adapter is not None:
        return
    if run.base_model.startswith("gpt2"):
        yield Hit("base_model", "no")


rule = Rule(id="our-rule", stage="lint", title="t", why="w", source="s", finds=finds, examples=(
    Example(before="base_model: gpt2", fires=True),
    Example(before="base_model: gpt2\\nrl: dpo"),
    OTHER
))
"""


@pytest.mark.parametrize(
    ("other", "survivors"),
    [
        (
            'Example(before="base_model: EleutherAI/pythia-14m"),',
            ["our-rule: finds: without `run.adapter is not None`"],
        ),
        (
            'Example(before="base_model: gpt2\\nadapter: lora"),',
            ["our-rule: finds: without `if run.base_model.startswith('gpt2')`"],
        ),
    ],
)
def test_the_clause_without_an_example_is_named(tmp_path: Path, other: str, survivors: list[str]):
    file = tmp_path / "our_rule.py"
    file.write_text(GUARDED.replace("OTHER", other))
    assert list(Guarded(load_rule(file), file).survivors()) == survivors
