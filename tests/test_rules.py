"""Rules: their examples are their tests, and the loader holds them to their form."""

import pytest

from advisor.engine.examples import failures_of
from advisor.engine.pack import Pack
from advisor.engine.registry import STAGES, built_in_folder, built_in_rules, organisation_rules
from advisor.engine.rule import Rule
from advisor.errors import InputError

RULES = [rule for stage in STAGES for rule in built_in_rules(stage).values()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_example_does_as_it_says(rule: Rule):
    assert list(failures_of(rule)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_tells_what_why_and_where_from(rule: Rule):
    assert rule.title and rule.why.strip() and rule.source
    assert rule.cost or rule.stage == "lint"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.stage == "fit"], ids=lambda rule: rule.id)
def test_every_fit_step_shows_what_it_does_to_the_peak(rule: Rule):
    numbers = [example.memory for example in rule.expanded if example.memory]
    assert numbers
    before, after = (float(part) for part in numbers[0].removesuffix(" GiB").split(" -> "))
    assert after < before


GOOD = """
from advisor import Example, Hit, Rule
rule = Rule(id="our-rule", stage="lint", title="t", why="w", source="s",
    finds=lambda run: [Hit("base_model", "no")] if run.base_model.startswith("gpt2") else [],
    examples=(Example(before="base_model: gpt2", fires=True), Example(before="base_model: EleutherAI/pythia-14m")))
"""


def test_an_organisations_folder_is_loaded_like_our_own(tmp_path):
    (tmp_path / "our_rule.py").write_text(GOOD)
    (rule,) = organisation_rules([Pack(tmp_path)]).values()
    assert list(failures_of(rule)) == []


@pytest.mark.parametrize(
    ("name", "whose"), [("does-not-fit", "one of the advisor's own"), ("our-rule", "another of yours")]
)
def test_an_organisations_rule_replaces_no_other(tmp_path, name, whose):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / f"{name.replace('-', '_')}.py"
        file.write_text(GOOD.replace("our-rule", name))
    with pytest.raises(InputError, match=whose) as caught:
        organisation_rules([Pack(tmp_path / "one"), Pack(tmp_path / "two")])
    assert caught.value.file.endswith(file.name)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("other_name.py", GOOD, "is not the file's name"),
        ("our_rule.py", "rule = 1", "must define `rule"),
        ("our_rule.py", "import nothing_like_this", "ModuleNotFoundError"),
        ("our_rule.py", "rule = (", "SyntaxError"),
    ],
)
def test_a_rule_file_that_breaks_the_form_is_named(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        organisation_rules([Pack(tmp_path)])
    assert caught.value.file.endswith(name)


def test_a_stage_has_a_folder():
    for stage in STAGES:
        assert (built_in_folder() / stage).is_dir()


def test_an_example_that_lies_is_found_out(tmp_path):
    (tmp_path / "our_rule.py").write_text(GOOD.replace("EleutherAI/pythia-14m", "gpt2-xl"))
    (rule,) = organisation_rules([Pack(tmp_path)]).values()
    assert list(failures_of(rule)) == ["example 2: should be silent, but fires"]
