"""What ``-p`` offers, without a terminal."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run
from advisor.cli.prompt.proposal import Review, proposal_for
from advisor.documents import Set, parse
from advisor.engine.options import Options
from advisor.opening import Context, open_run

CONFIG = (
    b"base_model: Qwen/Qwen2.5-7B\nlearning_rate: 1e-4\ndatasets: [{path: a, type: alpaca}]\nadapter: lora\nlora_r: 8\n"
)


def rule_that_sets(key: str, value: object) -> Rule:
    def finds(run: Run) -> Iterator[Hit]:
        if run.config.get(key) != value:
            yield Hit("adapter", "set it", (Set(key, value),))

    return Rule(id="own", stage="lint", title="Own", why="Own.", source="", examples=(), finds=finds)


def offered(rule: Rule) -> list[str]:
    opened = open_run(parse(CONFIG, "run.yaml", "yaml"), Context())
    options = Options(select=("own",), extra_rules={"own": rule})
    found = proposal_for(Review(opened, opened.run, options))
    return [found.finding.rule] if found else []


def test_an_edit_that_adds_an_error_is_not_offered():
    assert offered(rule_that_sets("lora_target_linear", True)) == ["own"]
    assert offered(rule_that_sets("load_in_4bit", "yes, please")) == []
    assert offered(rule_that_sets("load_in_8bit", True)) == ["own"]
    assert offered(rule_that_sets("adapter", "qlora")) == []
