"""Completion, at the mark `|` of a text that is being typed."""

from pathlib import Path
from typing import Any

import pytest

from advisor.util import Buffers

lsp: Any = pytest.importorskip("lsprotocol.types", reason="pygls is not installed")
from advisor.plugins.language_server.completing import completions  # noqa: E402

BASE = "base_model: Qwen/Qwen3-8B\n"


def found(marked: str, path: str = "/none/run.yaml", *, typed: bool = False, own: tuple[str, ...] = ()) -> list[Any]:
    before, _, after = marked.partition("|")
    row = before.rpartition("\n")[2]
    place = lsp.Position(before.count("\n"), len(row.encode("utf-16-le")) // 2)
    return completions(path, before + after, place, Buffers(), own, typed=typed)


def words(marked: str, path: str = "/none/run.yaml") -> list[str]:
    return [each.label for each in found(marked, path)]


def accepted(marked: str, word: str, path: str = "/none/run.yaml") -> str:
    """The text after a choice."""
    (item,) = (each for each in found(marked, path) if each.label == word)
    before, _, after = marked.partition("|")
    rows, edit = (before + after).split("\n"), item.text_edit
    units = rows[edit.range.start.line].encode("utf-16-le")
    start, end = 2 * edit.range.start.character, 2 * edit.range.end.character
    rows[edit.range.start.line] = (units[:start] + edit.new_text.encode("utf-16-le") + units[end:]).decode("utf-16-le")
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("marked", "word", "after"),
    [
        (BASE + "optim|", "optimizer", BASE + "optimizer: "),
        (BASE + "fsdp_con|", "fsdp_config", BASE + "fsdp_config:"),
        (BASE + "optimizer: 8b|  # é𝄞", "adamw_bnb_8bit", BASE + "optimizer: adamw_bnb_8bit  # é𝄞"),
        ("base_model: qwen/qwen3|", "Qwen/Qwen3-8B", "base_model: Qwen/Qwen3-8B"),
        ('base_model: "Qwen/Qwen3|"', "Qwen/Qwen3-8B", 'base_model: "Qwen/Qwen3-8B"'),
        (BASE + "bf16: |", "auto", BASE + "bf16: auto"),
        (BASE + "lr_scheduler: cos|", "cosine", BASE + "lr_scheduler: cosine"),
        (BASE + "datasets:\n  - path: x\n    type: al|", "alpaca", BASE + "datasets:\n  - path: x\n    type: alpaca"),
        (BASE + "datasets:\n- path: x\n  ty|", "type", BASE + "datasets:\n- path: x\n  type: "),
        (BASE + "plugins: [liger|", "axolotl.integrations.liger.LigerPlugin", None),
        (BASE + "plugins:\n  - liger|", "axolotl.integrations.liger.LigerPlugin", None),
        ("# advisor: gpus=4x a100-8|\n" + BASE, "a100-80gb-sxm", "# advisor: gpus=4x a100-80gb-sxm\n" + BASE),
        ("# advisor: gpus=409|\n" + BASE, "1x rtx-4090", "# advisor: gpus=1x rtx-4090\n" + BASE),
        ("# advisor: gpus=1x t4 ho|\n" + BASE, "host=", "# advisor: gpus=1x t4 host=\n" + BASE),
        ("# advisor: model=Qwen3-8|\n" + BASE, "Qwen/Qwen3-8B", "# advisor: model=Qwen/Qwen3-8B\n" + BASE),
        (BASE + "x: 1  # advisor: ignore[tight-fit, unknown-k|", "unknown-key", None),
        ("b|", "base_model", "base_model: "),
    ],
)
def test_a_choice_takes_the_place_of_the_word(marked: str, word: str, after: str | None):
    result = accepted(marked, word)
    assert after is None or result == after
    assert word in result


@pytest.mark.parametrize(
    ("marked", "word", "after"),
    [
        ('{"zero_optimization": {"stag|"}}', "stage", '{"zero_optimization": {"stage"}}'),
        ('{"zero_optimization": {|}}', "stage", '{"zero_optimization": {"stage": }}'),
        ('{"zero_optimization": {"stage": |}}', "3", '{"zero_optimization": {"stage": 3}}'),
        ('{"zero_optimization": {\n "offload_param": {"device": "|"', "nvme", None),
        ('{"zero_optimization": {}, "bf16": {"enabled": |', "true", None),
        ('{"zero_optimization": {"stage": 2}, |}', "gradient_clipping", None),
    ],
)
def test_in_deepspeeds_json_keys_are_in_quotes_and_switches_are_not(marked: str, word: str, after: str | None):
    result = accepted(marked, word, "/none/ds.json")
    assert after is None or result == after


def test_keys_that_are_there_or_deprecated_are_not_offered():
    said = words(BASE + "adapter: lora\n|\nlora_r: 16\n")
    assert {"lora_alpha", "optimizer"} <= set(said)
    assert not {"base_model", "adapter", "lora_r", "flash_attention"} & set(said)
    inside = words(BASE + "datasets:\n  - path: x\n    |\n    split: train\n  - field: y\n")
    assert "type" in inside and not {"path", "split", "optimizer"} & set(inside)
    assert "stage" not in words('{"zero_optimization": {"stage": 2, |}}', "/none/ds.json")


def test_keys_of_a_plugin_come_with_the_plugin():
    plugin = "plugins:\n  - axolotl.integrations.liger.LigerPlugin\n"
    assert "liger_rms_norm" in words(BASE + plugin + "liger|") and "liger_rms_norm" not in words(BASE + "liger|")


def test_what_is_below_deepspeed_in_the_yaml_is_deepspeeds():
    assert "stage" in words(BASE + "deepspeed:\n  zero_optimization:\n    |")
    assert "optimizer" not in words(BASE + "deepspeed:\n  zero_optimization:\n    |")


def test_a_dataset_has_the_keys_of_its_loss():
    assert "field_chosen" in words(BASE + "rl: dpo\ndatasets:\n  - |")
    assert "field_chosen" not in words(BASE + "datasets:\n  - |")


def test_words_that_begin_with_what_is_typed_come_first():
    items = sorted(found(BASE + "optimizer: adam|"), key=lambda item: item.sort_text)
    assert items[0].label == "adamw_torch"
    assert items[-1].label.find("adam") > 0


def test_jsons_are_found_where_they_lie(tmp_path: Path):
    (tmp_path / "deepspeed_configs").mkdir()
    (tmp_path / "deepspeed_configs" / "ours.json").write_text("{}")
    said = words(BASE + "deepspeed: |", str(tmp_path / "run.yaml"))
    assert {"deepspeed_configs/ours.json", "deepspeed_configs/zero3.json"} <= set(said)


def test_cards_of_the_settings_come_first():
    assert found("# advisor: gpus=2x |\n" + BASE, own=("ours",))[0].label == "ours"


@pytest.mark.parametrize(
    "marked",
    [
        "apiVersion: v1\nkind|",
        "jobs:\n  |",
        BASE + "lora_r: |",
        BASE + "# a comment op|",
        BASE + "a: b c|",
        BASE + "optimizer: {|",
        BASE + "nobody:\n  knows: |",
        "|",
    ],
)
def test_nothing_is_offered_where_nothing_is_known(marked: str):
    assert words(marked) == []


def test_a_blank_that_is_typed_brings_no_list_of_all_keys():
    assert found(BASE + "|", typed=True) == [] and found(BASE + "|") != []
    assert found(BASE + "bf16: |", typed=True) != []


@pytest.mark.parametrize(
    "text", ["{", '{"', '{"a', '{"zero_optimization": [[{"', "]]}}", '{"zero_optimization": {"a\\"', ""]
)
def test_broken_texts_are_read_as_far_as_they_go(text: str):
    for end in range(len(text) + 1):
        found(text[:end] + "|" + text[end:], "/none/ds.json")
        found(text[:end] + "|" + text[end:])


def test_a_place_outside_of_the_text_has_nothing():
    assert completions("/none/run.yaml", BASE, lsp.Position(99, 0), Buffers()) == []
    assert completions("/none/run.yaml", BASE, lsp.Position(0, 9999), Buffers()) is not None
