"""``check --data``: what the rows of a file say of the entry that names it, at its line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main
from advisor.datasets import Rows
from advisor.schemas.data import pages
from advisor.schemas.data.entry import Entry
from advisor.schemas.data.trained import hits
from advisor.session.rule_selection import ON_DATA

REST = """\
base_model: meta-llama/Llama-3.1-8B-Instruct
adapter: lora
lora_r: 16
lora_alpha: 16
lora_target_linear: true
learning_rate: 2e-4
sequence_len: 512
micro_batch_size: 1
gradient_accumulation_steps: 1
"""
CHAT = "datasets:\n  - path: rows.jsonl\n    type: chat_template\n    field_messages: messages\n"
PAIRS = "rl: dpo\ndatasets:\n  - path: rows.jsonl\n    type: chat_template.default\n    field_messages: prompt\n"
ALPACA = "datasets:\n  - path: rows.jsonl\n    type: alpaca\n"
KTO = "rl: kto\ndatasets:\n  - path: rows.jsonl\n    type: llama3.prompt_pairs\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def talk(answer: Any = "three", role: str = "assistant", *, user: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": user, "content": "one two"}, {"role": role, "content": answer}]}


def pair(chosen: Any = "yes", rejected: Any = "no") -> dict[str, Any]:
    return {"prompt": "a?", "chosen": chosen, "rejected": rejected}


def check(entry: str, rows: list[Any], *options: str, rest: str = REST) -> Result:
    Path("run.yaml").write_text(rest + entry)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["check", "run.yaml", "--isolated", "--gpus", "1x h100-80gb", "--data", "rows.jsonl", *options]
    return CliRunner().invoke(main, command)


def found(entry: str, rows: list[Any], **given: Any) -> list[tuple[str, str, int, str]]:
    result = check(entry, rows, "--output-format", "json", **given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    findings = json.loads(result.stdout)["runs"][0]["findings"]
    mine = [one for one in findings if one["rule"].startswith("data-")]
    return [(one["rule"], one["level"], one["location"]["line"], one["message"]) for one in mine]


@pytest.mark.parametrize(
    ("entry", "rows"),
    [
        (CHAT, [talk()] * 5),
        (CHAT, [talk(role="gpt", user="human")] * 5),
        (CHAT + "    roles:\n      assistant: [bot]\n      user: [user]\n", [talk(role="bot")] * 5),
        (CHAT, [{"messages": json.dumps(talk()["messages"])}] * 5),
        (CHAT + "train_on_inputs: true\n", [talk(role="bot")] * 5),
        (PAIRS, [pair()] * 5),
        (ALPACA, [{"instruction": "a", "input": "", "output": "b"}] * 5),
        (ALPACA.replace("alpaca", "completion"), [{"text": "word " * 9000}] * 5),
        (KTO, [{"prompt": "a", "completion": "b", "label": at % 2 == 0} for at in range(20)]),
        (ALPACA.replace("alpaca", "my_own.type"), [{"any": 1}] * 5),
    ],
)
def test_rows_that_the_entry_reads_get_no_word(entry: str, rows: list[Any]):
    assert found(entry, rows) == []


@pytest.mark.parametrize(
    ("entry", "rows", "rule", "line", "said"),
    [
        (ALPACA, [talk()] * 5, "data-shape-differs", 12, "are chats: `messages` are turns"),
        (CHAT, [{"instruction": "a", "output": "b"}] * 5, "data-shape-differs", 12, "prompts with answers"),
        (
            CHAT.replace("field_messages: messages", "field_messages: turns"),
            [{"talk": 1}] * 3,
            "data-fields-missing",
            13,
            "`turns` is in none of 3 rows",
        ),
        (CHAT, [*[talk()] * 4, {"note": 1}], "data-fields-missing", 13, "1 of 5 rows (the first on line 5"),
        (
            CHAT,
            [{"messages": [{"from": "gpt", "value": "a"}]}] * 3,
            "data-fields-missing",
            12,
            "have `from`, `value`".removeprefix("have "),
        ),
        (
            ALPACA.replace("alpaca", "{field_instruction: ask, field_output: sai}"),
            [{"ask": "a", "said": "b"}] * 3,
            "data-fields-missing",
            12,
            "`sai` is in none",
        ),
        (CHAT, [talk(role="bot")] * 5, "data-roles-not-trained", 12, "`bot` (5 turns)"),
        (CHAT, [*[talk()] * 3, talk(""), talk(None)], "data-rows-not-trained", 12, "2 of 5 rows (the first on line 4"),
        (ALPACA, [{"instruction": "a", "output": " "}] * 2, "data-rows-not-trained", 12, "2 of 2 rows"),
        (CHAT, [talk("word " * 2000), *[talk()] * 3], "data-rows-too-long", 11, "25 % of 4 rows"),
        (PAIRS, [pair(" yes"), *[pair()] * 3], "data-answers-trimmed", 12, "1 of 4 rows (the first on line 1"),
        (PAIRS, [pair([{"role": "assistant", "content": "a\n"}])] * 2, "data-answers-trimmed", 12, "2 of 2 rows"),
        (PAIRS, [pair("no"), *[pair()] * 3], "data-pairs-equal", 12, "1 of 4 rows"),
        (
            KTO,
            [{"prompt": "a", "completion": "b", "label": at < 8} for at in range(10)],
            "data-labels-uneven",
            12,
            "`kto_undesirable_weight: 4`",
        ),
    ],
)
def test_what_the_rows_say_stands_at_the_entry(entry: str, rows: list[Any], rule: str, line: int, said: str):
    mine = [one for one in found(entry, rows) if one[0] == rule]
    assert [one[:3] for one in mine] == [(rule, "warning", line)]
    assert said in mine[0][3]


def test_length_within_the_doubt_is_not_said():
    assert found(CHAT, [talk("word " * 420)] * 3) == []


def test_a_template_that_does_not_strip_leaves_answers_whole():
    assert (
        found(PAIRS, [pair(" yes")] * 3, rest=REST.replace("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-8B")) == []
    )
    (trimmed,) = found(PAIRS + "chat_template: gemma\n", [pair(" yes")] * 3)
    assert trimmed[0] == "data-answers-trimmed"


def test_a_sample_is_called_one():
    ((_, _, _, message),) = found(PAIRS, [pair("no")] * 900)
    assert "200 of the first 200 of 900 rows" in message


def test_of_several_entries_the_one_that_names_the_file_counts():
    other = "datasets:\n  - path: other.jsonl\n    type: alpaca\n"
    assert found(other + CHAT.removeprefix("datasets:\n"), [talk()] * 3) == []
    result = check(other + other.removeprefix("datasets:\n"), [talk()])
    assert result.exit_code == 2 and "none of the 2 entries" in result.output


def test_the_count_is_on_the_screen_and_in_every_format():
    from advisor.report import FORMATS

    for name in ("full", *FORMATS.keys() - {"github-review", "gitlab-review"}):  # which have edits alone
        said = check(CHAT, [talk(role="bot")] * 7, "--output-format", name).output
        assert "data-roles-not-trained" in said, name
    assert "7 turns" in " ".join(check(CHAT, [talk(role="bot")] * 7).output.split())


def test_a_rule_is_chosen_and_silenced_as_any_other():
    rows = [talk(role="bot")] * 3
    assert check(CHAT, rows, "--select", "data-roles-not-trained", "--fail-on", "warning").exit_code == 1
    text = check(CHAT.replace("chat_template", "chat_template  # advisor: ignore[data-roles-not-trained]"), rows).output
    assert "data-roles-not-trained" not in text and "unused-ignore" not in text


def test_without_data_its_comments_are_not_unused():
    Path("run.yaml").write_text("# advisor: file-ignore[data-rows-too-long]\n" + REST + ALPACA)
    said = CliRunner().invoke(main, ["check", "run.yaml", "--isolated", "--gpus", "1x h100-80gb"]).output
    assert "unused-ignore" not in said and "unknown rule" not in said


def test_a_file_that_cannot_be_read_is_one_line():
    Path("run.yaml").write_text(REST + CHAT)
    done = CliRunner().invoke(main, ["check", "run.yaml", "--isolated", "--data", "nowhere.jsonl"])
    assert done.exit_code == 2 and "nowhere.jsonl" in done.output and "--rows-as" not in done.output


def test_every_rule_has_a_page():
    assert tuple(pages()) == ON_DATA
    for name in ON_DATA:
        page = CliRunner().invoke(main, ["rule", name])
        assert page.exit_code == 0 and pages()[name].title in page.output


def of(count: int) -> Entry:
    return Entry("datasets.0", {}, "", Rows("rows.jsonl", ({"a": 1},) * 2, (1, 2), count))


@pytest.mark.parametrize(
    ("rows", "count", "level", "said"),
    [
        ([[10, 5], [10, 3]], 2, None, "40 % of the 20 tokens of 2 rows"),
        ([[10, 5], [10, 0]], 2, "warning", "1 have no label"),
        ([[10, 0], [10, 0]], 2, "error", "no token"),
        ([[10, 0], [10, 0]], 900, "warning", "no token"),
    ],
)
def test_labels_are_an_error_only_where_the_whole_file_was_read(rows: Any, count: int, level: str | None, said: str):
    (hit,) = hits(of(count), {"rows": rows}, "0.19.0")
    assert hit.level == level and said in hit.message


def test_the_trouble_of_axolotl_is_a_note():
    (hit,) = hits(of(2), {"trouble": "KeyError: 'x'"}, "0.19.0")
    assert hit.level == "note"
