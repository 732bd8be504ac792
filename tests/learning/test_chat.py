"""The table of chats: its rows are sound, and a model finds the one of its family and version."""

import json
import re

import pytest

from advisor.learning import chat_of
from advisor.learning.chat import CHAT
from advisor.schemas import axolotl_keys

TABLE = json.loads(CHAT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: f"{row['types'][0]}-{row.get('names', '')}")
def test_a_row_names_templates_that_axolotl_has_and_a_source(row: dict[str, object]):
    known = next(
        kind["values"]
        for kind in axolotl_keys().rows(axolotl_keys().root)["chat_template"]["kinds"]
        if "values" in kind
    )
    for key in ("template", "base_template"):
        assert str(row[key]).removeprefix("tokenizer_default_fallback_") in known
    assert row["end"] and row["source"]
    re.compile(str(row.get("names", "")))


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: f"{row['types'][0]}-{row.get('names', '')}")
def test_what_a_chat_model_needs_its_base_needs_too(row: dict[str, list[str]]):
    assert set(row["eot_tokens"]) <= set(row["base_eot_tokens"])


@pytest.mark.parametrize(
    ("model_type", "name", "template", "eot", "base_template", "base_eot"),
    [
        ("llama", "meta-llama/Llama-3.1-8B-Instruct", "tokenizer_default", (), "llama3", ("<|eot_id|>",)),
        ("llama", "meta-llama/Meta-Llama-3-8B", "tokenizer_default", (), "llama3", ("<|eot_id|>",)),
        ("llama", "meta-llama/Llama-2-7b-hf", "tokenizer_default", (), "alpaca", ()),
        ("mistral", "mistralai/Mistral-7B-v0.3", "tokenizer_default", (), "mistral_v2v3", ()),
        ("mistral", "mistralai/Mistral-Nemo-Base-2407", "tokenizer_default", (), "mistral_v3_tekken", ()),
        ("gemma3", "google/gemma-3-4b-it", "gemma3", ("<end_of_turn>",), "gemma3", ("<end_of_turn>",)),
        ("qwen3", "./anywhere", "tokenizer_default", (), "tokenizer_default", ("<|im_end|>",)),
        ("phi3", "microsoft/phi-4", "tokenizer_default", (), "tokenizer_default", ()),
        ("phi3", "microsoft/Phi-3.5-mini-instruct", "phi_35", ("<|end|>",), "phi_35", ("<|end|>",)),
    ],
)
def test_a_model_finds_the_row_of_its_version(
    model_type: str, name: str, template: str, eot: tuple[str, ...], base_template: str, base_eot: tuple[str, ...]
):
    chat = chat_of(model_type, name)
    assert chat is not None
    assert (chat.template, chat.eot_tokens) == (template, eot)
    assert (chat.base_template, chat.base_eot_tokens) == (base_template, base_eot)


def test_a_llama_that_no_name_tells_and_a_type_that_no_row_has_are_not_guessed():
    assert chat_of("llama", "./mine") is None
    assert chat_of("nobodys", "meta-llama/Llama-3.1-8B") is None
    llama = chat_of("llama", "meta-llama/Llama-3.1-8B")
    older = chat_of("llama", "meta-llama/Meta-Llama-3-8B")
    assert llama is not None and older is not None
    assert (llama.pad, older.pad) == ("<|finetune_right_pad_id|>", "<|end_of_text|>")


@pytest.mark.parametrize(
    ("model_type", "name", "base"),
    [
        ("llama", "meta-llama/Llama-3.2-1B", True),
        ("llama", "NousResearch/Meta-Llama-3-8B", True),
        ("llama", "meta-llama/Llama-3.1-8B-Instruct", False),
        ("qwen2", "Qwen/Qwen2.5-7B", True),
        ("qwen2", "Qwen/Qwen2.5-7B-Instruct", False),
        ("qwen3", "Qwen/Qwen3-8B", False),
        ("qwen3", "Qwen/Qwen3-8B-Base", True),
        ("mistral", "mistralai/Mistral-7B-v0.1", False),
    ],
)
def test_a_base_is_known_by_its_published_name(model_type: str, name: str, base: bool):
    chat = chat_of(model_type, name)
    assert chat is not None
    assert chat.is_base(name) is base
