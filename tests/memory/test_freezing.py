"""Patterns of weights that stay trained, which axolotl applies to the names that PEFT has given."""

import re
from pathlib import Path

import pytest

from advisor.memory.freezing import unfrozen_matcher, wrapped_names
from advisor.memory.weights import weights_of

from .small import ADAPTER, LORA, small


@pytest.mark.parametrize(
    ("patterns", "trained"),
    [
        (["^model.layers.*", "^lm_head.*"], 0),
        (["layers.[0-3]"], 0),  # matched from the start of a name
        (["base_model.+lora_"], ADAPTER),
        ([], ADAPTER),
    ],
)
def test_patterns_that_match_no_name_under_peft_freeze_the_adapter_too(
    tmp_path: Path, patterns: list[str], trained: int
):
    made = small(tmp_path, gpus=1, unfrozen_parameters=patterns, **LORA)
    weights = weights_of(made.run, made.model)
    assert weights.trained_elements == trained
    assert sum(group.elements for group in weights.groups if group.name == "adapter") == ADAPTER
    assert sum(count for _, count in weights.trained_shapes) == (16 if trained else 0)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("lm_head.weight",), {"lm_head.weight", "lm_head.weight_scale"}),
        (("model.layers.1",), {"model.layers.1.mlp", "model.layers.12.mlp"}),
        (("model.layers.(1|3).",), {"model.layers.1.mlp", "model.layers.3.mlp"}),
        (("^model.+mlp", "norm"), {"model.layers.1.mlp", "model.layers.3.mlp", "model.layers.12.mlp", "norm.weight"}),
        (("lm_head.weight[0:32000]",), {"lm_head.weight", "lm_head.weight_scale"}),
        (("", "x"), None),
        (("nothing", "["), None),
        (("modelXlayers",), set()),
    ],
)
def test_a_pattern_matches_the_start_of_a_name(patterns: tuple[str, ...], names: set[str] | None):
    known = ["lm_head.weight", "lm_head.weight_scale", "norm.weight", *(f"model.layers.{n}.mlp" for n in (1, 3, 12))]
    matches = unfrozen_matcher(patterns)
    assert {name for name in known if matches(name)} == (set(known) if names is None else names)


def test_many_patterns_are_read_once_for_all_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    patterns = [f"model.layers.{number}.+weight" for number in range(300)]
    made = small(tmp_path, gpus=1, unfrozen_parameters=patterns)
    compiled: list[str] = []
    true = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: compiled.append(text) or true(text, flags))
    assert weights_of(made.run, made.model).trained_elements
    assert len(compiled) <= len(patterns)


@pytest.mark.oracle
def test_the_names_are_those_of_peft_and_axolotl_freezes_what_matches_none(tmp_path: Path):
    torch = pytest.importorskip("torch")
    transformers, peft = pytest.importorskip("transformers"), pytest.importorskip("peft")
    freeze = pytest.importorskip("axolotl.utils.freeze")
    made = small(tmp_path, gpus=1, unfrozen_parameters=["^model.layers.*"], **LORA)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model = peft.get_peft_model(model, peft.LoraConfig(r=10, target_modules=["q_proj", "o_proj"]))
    names = {name for name, _ in model.named_parameters()}
    assert names <= set(wrapped_names(made.run, made.model))
    freeze.freeze_layers_except(model, ["^model.layers.*", "^lm_head.*"])
    assert not any(weight.requires_grad for weight in model.parameters())
    freeze.freeze_layers_except(model, ["base_model.+lora_"])
    assert all(weight.requires_grad == ("lora_" in name) for name, weight in model.named_parameters())
