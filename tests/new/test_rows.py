"""The rows of the data: which shape, which entry, how many tokens, and what must be stated."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.errors import InputError
from advisor.new import Request, questions, ways
from advisor.new.rows import seen_in
from advisor.session import RunOptions
from advisor.session.text import plain_session

TURNS = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}]
PAIR = {"chosen": "yes", "rejected": "no"}


def file_of(folder: Path, rows: Sequence[Any], name: str = "rows.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def entry(folder: Path, row: dict[str, Any], *, chats: bool = True, **given: Any) -> dict[str, Any]:
    request = Request(model="x", data=file_of(folder, [row] * 3), **given)
    return {key: value for key, value in seen_in(request, None, chats=chats).entry.items() if key != "path"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"messages": TURNS}, {"type": "chat_template", "field_messages": "messages"}),
        ({"text": "abc"}, {"type": "completion", "field": "text"}),
        ({"instruction": "a", "output": "b"}, {"type": "alpaca"}),
        (
            {"prompt": "a", **PAIR},
            {
                "type": "chat_template.default",
                "field_messages": "prompt",
                "field_chosen": "chosen",
                "field_rejected": "rejected",
            },
        ),
        (
            {"chosen": TURNS, "rejected": TURNS},
            {"type": "chat_template.argilla_chat", "field_chosen": "chosen", "field_rejected": "rejected"},
        ),
    ],
)
def test_a_shape_has_its_entry(tmp_path: Path, row: dict[str, Any], expected: dict[str, Any]):
    assert entry(tmp_path, row) == expected


def test_other_names_of_turns_are_mapped(tmp_path: Path):
    found = entry(tmp_path, {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})
    assert found["message_property_mappings"] == {"role": "from", "content": "value"} and "roles" not in found


def test_a_role_that_answers_must_be_stated(tmp_path: Path):
    row = {
        "messages": [{"role": "amy", "content": "b"}, {"role": "zoe", "content": "a"}, {"role": "amy", "content": ""}]
    }
    with pytest.raises(InputError, match="none is called `assistant`") as caught:
        entry(tmp_path, row)
    assert caught.value.remedy.endswith("--rows-as amy")
    found = entry(tmp_path, row, rows_as="amy")
    assert "amy" in found["roles"]["assistant"] and "zoe" in found["roles"]["user"]
    request = Request(model="Qwen/Qwen3-8B", data=str(tmp_path / "rows.jsonl"), options=RunOptions(gpus="24GB"))
    (question,) = questions(request, plain_session(request.options))
    assert (question.option, question.default) == ("--rows-as", "amy")


@pytest.mark.parametrize(
    ("chats", "stated", "form"), [(False, None, "{instruction}"), (True, "finished", "{instruction}")]
)
def test_a_prompt_may_be_finished_text(tmp_path: Path, chats: bool, stated: str | None, form: str):
    found = entry(tmp_path, {"prompt": "a", "completion": "b"}, chats=chats, rows_as=stated)
    assert found["type"]["format"] == form


@pytest.mark.parametrize(
    ("rows", "line", "said"),
    [
        ([{"messages": TURNS}, {"messages": TURNS}, {"text": "a"}], 3, "2 of 3 rows"),
        ([{"no": 1}], 1, "no known shape"),
        ([{"prompt": "a", "chosen": [{"role": "gpt", "content": "b"}], "rejected": "c"}], 1, "the role `gpt`"),
        ([{"prompt": "a", "completion": "b", "label": True}], 0, "KTO"),
        ([7], 1, "no JSON object"),
        ([], 0, "no rows"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path: Path, rows: list[Any], line: int, said: str):
    with pytest.raises(InputError, match=said) as caught:
        seen_in(Request(model="x", data=file_of(tmp_path, rows)), None, chats=True)
    assert caught.value.line == line and caught.value.remedy


def test_a_list_is_read_too_and_lines_are_counted(tmp_path: Path):
    whole = tmp_path / "rows.json"
    whole.write_text(json.dumps([{"text": "a"}] * 7))
    assert seen_in(Request(model="x", data=str(whole)), None, chats=True).rows == 7
    many = file_of(tmp_path, [{"text": "a"}] * 1234)
    assert seen_in(Request(model="x", data=many), None, chats=True).rows == 1234


def test_a_name_on_the_hub_must_be_stated(tmp_path: Path):
    with pytest.raises(InputError, match="no file of rows") as caught:
        seen_in(Request(model="x", data="tatsu-lab/alpaca"), None, chats=True)
    assert "--rows-as" in caught.value.remedy
    seen = seen_in(Request(model="x", data="tatsu-lab/alpaca", rows_as="instructions"), None, chats=True)
    assert dict(seen.entry) == {"path": "tatsu-lab/alpaca", "type": "alpaca"}


def test_tokens_are_counted_by_script(tmp_path: Path):
    def mean(text: str) -> float:
        return seen_in(Request(model="x", data=file_of(tmp_path, [{"text": text}])), None, chats=True).mean or 0.0

    assert mean("a" * 400) == pytest.approx(100, rel=0.05)
    assert mean("7" * 400) == pytest.approx(400, rel=0.05)
    assert mean("字" * 400) == pytest.approx(400, rel=0.05)
    assert mean("я" * 400) == pytest.approx(160, rel=0.05)


def config_for(folder: Path, rows: Sequence[Any], **given: Any) -> dict[str, Any]:
    request = Request(
        model="Qwen/Qwen3-8B", data=file_of(folder, rows), options=RunOptions(gpus="1x rtx-4090"), **given
    )
    chosen = ways(request).chosen
    assert chosen is not None
    return yaml.safe_load(chosen.files["run.yaml"])


def test_pairs_are_dpo(tmp_path: Path):
    written = config_for(tmp_path, [{"prompt": "a", **PAIR}] * 300)
    assert written["rl"] == "dpo" and written["datasets"][0]["field_messages"] == "prompt"


def test_rows_that_are_no_pairs_are_no_dpo(tmp_path: Path):
    with pytest.raises(InputError, match="needs pairs"):
        config_for(tmp_path, [{"text": "a"}], method="dpo")


def test_few_rows_have_their_steps(tmp_path: Path):
    written = config_for(tmp_path, [{"messages": [TURNS[0], {"role": "assistant", "content": "word " * 200}]}] * 900)
    rows = written["micro_batch_size"] * written["gradient_accumulation_steps"]
    tokens = 900 * 250 * written["num_epochs"]
    assert written["num_epochs"] == 3 and tokens / (rows * written["sequence_len"]) > 45
    assert written["val_set_size"] == 0.1


def test_so_few_rows_are_not_held_back(tmp_path: Path):
    written = config_for(tmp_path, [{"text": "word " * 200}] * 20)
    assert written["val_set_size"] == 0 and not {"evals_per_epoch", "eval_sample_packing"} & written.keys()


def test_rows_are_as_long_as_the_longest(tmp_path: Path):
    assert config_for(tmp_path, [{"text": "word " * 5000}] * 500)["sequence_len"] == 8192
