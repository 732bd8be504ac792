"""Where an architecture is looked for, in which order, and what is said when it is nowhere."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from advisor.models import Architecture, Unknown, copy_in_bf16, resolve

CATALOGUED = "meta-llama/Llama-3.1-8B"
TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "vocab_size": 10,
    "tie_word_embeddings": True,
}


def tiny(layers: int) -> dict[str, Any]:
    """A config that is told from others by its number of layers."""
    return TINY | {"num_hidden_layers": layers}


def write(folder: Path, config: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def cache(root: Path, name: str, config: object, *, revision: str = "abc", main: bool = True) -> None:
    model = root / f"models--{name.replace('/', '--')}"
    write(model / "snapshots" / revision, config)
    if main:
        (model / "refs").mkdir(exist_ok=True)
        (model / "refs" / "main").write_text(revision + "\n")


def layers(found: Architecture | Unknown) -> int:
    assert isinstance(found, Architecture), found
    return found.layers


def unknown(found: Architecture | Unknown) -> Unknown:
    assert isinstance(found, Unknown), found
    return found


@pytest.fixture(autouse=True)
def empty_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No cache, no local models: the test's own folder is the working directory."""
    for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sources_are_asked_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    found = [resolve(CATALOGUED)]
    cache(tmp_path / "hub", CATALOGUED, tiny(4))
    found.append(resolve(CATALOGUED))
    write(tmp_path / "configs" / CATALOGUED, tiny(3))
    found.append(resolve(CATALOGUED, folder=str(tmp_path / "configs")))
    write(tmp_path / CATALOGUED, tiny(2))
    found.append(resolve(CATALOGUED, folder=str(tmp_path / "configs")))
    given = write(tmp_path / "given", tiny(1))
    found.append(resolve(CATALOGUED, folder=str(tmp_path / "configs"), model_config=str(given)))

    assert [layers(each) for each in found] == [32, 4, 3, 2, 1]
    assert [each.source for each in found if isinstance(each, Architecture)] == [
        "built-in catalogue",
        "Hugging Face cache",
        str(tmp_path / "configs" / CATALOGUED / "config.json"),
        str(Path(CATALOGUED) / "config.json"),
        str(given),
    ]


@pytest.mark.parametrize(
    ("variable", "below"),
    [
        ("HF_HUB_CACHE", "."),
        ("HUGGINGFACE_HUB_CACHE", "."),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
    ],
)
def test_cache_is_found_by_each_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, below: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "somewhere"))
    cache(tmp_path / "somewhere" / below, "org/private", tiny(5))

    assert layers(resolve("org/private")) == 5


def test_cache_is_found_in_the_home_folder(tmp_path: Path) -> None:
    cache(tmp_path / "home" / ".cache" / "huggingface" / "hub", "org/private", tiny(5))

    assert layers(resolve("org/private")) == 5


def test_main_is_preferred_among_cached_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cache(tmp_path, "org/private", tiny(1), revision="aaa", main=False)
    assert layers(resolve("org/private")) == 1
    cache(tmp_path, "org/private", tiny(2), revision="bbb")

    assert layers(resolve("org/private")) == 2


def test_folder_with_a_config_may_be_given(tmp_path: Path) -> None:
    write(tmp_path / "given", tiny(7))

    assert layers(resolve("whatever", model_config=str(tmp_path / "given"))) == 7


def test_absolute_folder_is_a_local_model(tmp_path: Path) -> None:
    write(tmp_path / "model", tiny(6))

    assert layers(resolve(str(tmp_path / "model"))) == 6


@pytest.mark.parametrize("broken", ["{", "[]", json.dumps({"model_type": "futuristic"}), "", json.dumps({})])
def test_unusable_config_in_the_cache_falls_through_to_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cache(tmp_path, CATALOGUED, broken)

    assert layers(resolve(CATALOGUED)) == 32


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "not a JSON object"),
        (json.dumps({"model_type": "futuristic"}), "futuristic"),
    ],
)
def test_reason_names_what_was_met(tmp_path: Path, broken: str, said: str) -> None:
    path = write(tmp_path / "org" / "private", broken)

    found = unknown(resolve("org/private"))

    assert said in found.reason and str(path.relative_to(tmp_path)) in found.reason


@pytest.mark.parametrize("given", ["nowhere.json", "broken/config.json"])
def test_given_config_that_cannot_be_used_is_not_replaced_by_another_source(tmp_path: Path, given: str) -> None:
    write(tmp_path / "broken", "{")

    found = unknown(resolve(CATALOGUED, model_config=given))

    assert given in found.reason and "--model-config" in found.remedies[0]


def test_unknown_model_is_told_the_ways_to_supply_it() -> None:
    found = unknown(resolve("org/nothing-like-any-other"))

    assert found.name == "org/nothing-like-any-other"
    assert "catalogue" in found.reason
    assert [
        "# advisor: model=" in found.remedies[0],
        "--model-config" in found.remedies[1],
        "hf download" in found.remedies[2],
        "--online" in found.remedies[3],
    ] == [
        True,
        True,
        True,
        True,
    ]


def test_misspelt_name_is_asked_back() -> None:
    found = unknown(resolve("meta-llama/Lama-3.1-8B"))

    assert found.remedies[0].startswith("did you mean") and CATALOGUED in found.remedies[0]


def test_local_path_is_not_sent_to_the_hub(tmp_path: Path) -> None:
    found = unknown(resolve(str(tmp_path / "absent")))

    assert not any("hf download" in remedy for remedy in found.remedies)


def test_overrides_go_on_top() -> None:
    found = resolve(CATALOGUED, overrides={"num_hidden_layers": 2, "max_position_embeddings": 99})

    assert isinstance(found, Architecture)
    assert (found.layers, found.max_position_embeddings) == (2, 99)
    assert layers(resolve(CATALOGUED)) == 32


def test_nested_overrides_are_merged() -> None:
    found = resolve("google/gemma-3-4b-pt", overrides={"text_config": {"num_hidden_layers": 6}})

    assert isinstance(found, Architecture)
    assert (found.layers, found.hidden_size) == (6, 2560)


def test_text_only_run_leaves_the_towers_out_where_the_class_does() -> None:
    whole, decoder = (resolve("Qwen/Qwen3.5-9B", text_only=only) for only in (False, True))
    gemma = resolve("google/gemma-3-4b-pt", text_only=True)

    assert isinstance(whole, Architecture) and isinstance(decoder, Architecture) and isinstance(gemma, Architecture)
    assert whole.parameters - decoder.parameters == whole.by_kind["vision"] > 0
    assert decoder.class_name == "Qwen3_5ForCausalLM"
    assert gemma.by_kind["vision"] > 0


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("openai/gpt-oss-20b", "mxfp4"),
        ("unsloth/gpt-oss-20b-BF16", None),
        ("deepseek-ai/DeepSeek-V3", "fp8"),
        ("unsloth/c4ai-command-r-08-2024-bnb-4bit", "bitsandbytes"),
        ("TheBloke/Llama-2-7B-GPTQ", "gptq"),
        ("mistralai/Ministral-3-8B-Instruct-2512", "fp8"),
        ("mistralai/Ministral-3-8B-Instruct-2512-BF16", None),
        ("mistralai/Ministral-3-8B-Base-2512", None),
        ("Qwen/Qwen3-30B-A3B-FP8", "fp8"),
        (CATALOGUED, None),
    ],
)
def test_released_quantization_is_known(name: str, method: str | None) -> None:
    found = resolve(name)

    assert isinstance(found, Architecture) and found.quantized == method


def test_quantized_copy_is_taken_for_its_original_and_says_so() -> None:
    found = resolve("unsloth/Meta-Llama-3.1-8B-bnb-4bit")

    assert isinstance(found, Architecture)
    assert (found.quantized, found.parameters) == ("bitsandbytes", 8_030_261_248)
    assert any("unsloth/Meta-Llama-3.1-8B" in fact for fact in found.extra)


class Hub:
    """Stands in for huggingface_hub: knows one config, refuses the rest."""

    def __init__(self, configs: Mapping[str, dict[str, Any]], folder: Path) -> None:
        self.configs = configs
        self.folder = folder
        self.asked: list[str] = []

    def hf_hub_download(self, name: str, file: str) -> str:
        self.asked.append(name)
        if name not in self.configs:
            raise OSError(f"{name} is not a model\nlong explanation")
        (self.folder / file).write_text(json.dumps(self.configs[name]))
        return str(self.folder / file)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    fake = Hub({"org/online": tiny(9)}, tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def test_hub_is_asked_only_where_allowed(hub: Hub) -> None:
    assert isinstance(resolve("org/online"), Unknown)
    assert hub.asked == []

    assert layers(resolve("org/online", offline=False)) == 9


def test_hub_is_not_asked_for_what_is_known(hub: Hub) -> None:
    assert layers(resolve(CATALOGUED, offline=False)) == 32
    assert hub.asked == []


def test_trouble_with_the_hub_becomes_the_reason(hub: Hub) -> None:
    found = unknown(resolve("org/absent", offline=False))

    assert "org/absent is not a model" in found.reason and "long explanation" not in found.reason


def test_a_missing_huggingface_hub_becomes_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    assert "huggingface_hub" in unknown(resolve("org/absent", offline=False)).reason


def test_catalogue_needs_no_heavy_import() -> None:
    import subprocess

    code = (
        "import sys; from advisor.models import resolve; resolve('google/gemma-3-4b-pt');"
        "print({'torch', 'transformers', 'pydantic', 'difflib', 'importlib.metadata'} & set(sys.modules))"
    )
    root = Path(__file__).parents[2]

    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=root, check=True)

    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("deepseek-ai/DeepSeek-V3", "unsloth/DeepSeek-V3-bf16"),
        ("openai/gpt-oss-20b", "unsloth/gpt-oss-20b-BF16"),
        ("Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B"),
        ("deepseek-ai/DeepSeek-R1", None),
        ("Qwen/Qwen3-8B", None),
        ("nobody/knows-this-FP8", None),
    ],
)
def test_a_checkpoint_that_is_stored_quantized_has_a_copy_in_bf16(name: str, copy: str | None) -> None:
    assert copy_in_bf16(name) == copy
    if copy is not None:
        found = resolve(copy)
        assert not isinstance(found, Unknown) and found.quantized is None
