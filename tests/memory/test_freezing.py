"""Patterns of weights that stay trained, which axolotl applies to the names that PEFT has given."""

from pathlib import Path

import pytest

from advisor.memory.freezing import wrapped_names
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
