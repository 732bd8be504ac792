"""A path that is called after a published model names it, where no config can be read there."""

import json
from pathlib import Path

import pytest

from advisor.models import Architecture, resolve
from advisor.models.hub import names_in


def taken(name: str) -> str | None:
    """The model that a name is taken for by its path."""
    found = resolve(name)
    facts = found.extra if isinstance(found, Architecture) else ()
    said = [fact for fact in facts if fact.endswith("by its path.")]
    return said[0].removeprefix("Taken for ").removesuffix(" by its path.") if said else None


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/data/hub/models--Qwen--Qwen2.5-7B/snapshots/0123456789abcdef", "Qwen/Qwen2.5-7B"),
        ("~/.cache/huggingface/hub/models--meta-llama--Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("/media/disk/models/TinyLlama-1.1B-Chat-v1.0", "TinyLlama/TinyLlama_v1.1"),
        ("/models/Qwen/Qwen2.5-7B/", "Qwen/Qwen2.5-7B"),
        ("./qwen2.5-7b", "Qwen/Qwen2.5-7B"),
        ("my-org/Qwen2.5-7B", None),
        ("Qwen2.5-7B", None),
        ("/models/my-qwen2.5-7b-sft", None),
        ("./out", None),
    ],
)
def test_a_path_names_its_model(path: str, model: str | None):
    assert taken(path) == model


def test_how_it_is_stored_is_in_the_paths_name():
    found = resolve("/models/Qwen2.5-7B-bnb-4bit")
    assert isinstance(found, Architecture) and found.quantized == "bitsandbytes"


def test_a_config_in_the_folder_counts_first(tmp_path: Path):
    folder = tmp_path / "Qwen2.5-7B"
    folder.mkdir()
    small = {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}
    (folder / "config.json").write_text(json.dumps({**small, **heads}))
    found = resolve(str(folder))
    assert isinstance(found, Architecture) and found.hidden_size == 64


def test_an_organisations_copy_is_not_read_as_a_path():
    assert list(names_in("my-org/Qwen2.5-7B")) == []


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen2-57B-A14B-Instruct",
        "deepseek-ai/deepseek-math-7b-instruct",
        "AIDC-AI/Marco-o1",
        "bofenghuang/vigogne-2-7b-instruct",
        "RedHatAI/Sparse-Llama-3.1-8B-2of4",
        "MiniMaxAI/MiniMax-M2.5",
    ],
)
def test_published_models_that_strangers_train_are_known(name: str):
    assert isinstance(resolve(name), Architecture)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("allenai/Llama-3.1-Tulu-3-8B-SFT", "allenai/Llama-3.1-Tulu-3-8B"),
        ("Qwen/Qwen2.5-7B-DPO", "Qwen/Qwen2.5-7B"),
        ("my-org/Llama-3.1-8B-SFT", None),
        ("Qwen/Qwen2.5-7B-Math-SFT", None),
    ],
)
def test_how_far_a_training_went_does_not_change_what_is_trained(name: str, model: str | None):
    found = resolve(name)
    facts = found.extra if isinstance(found, Architecture) else ()
    assert facts == ((f"Taken for {model} by its name.",) if model else ())
