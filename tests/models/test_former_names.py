"""The names of a multimodal model's parts before transformers made them modules of one model."""

from advisor.memory.weights import weights_of
from advisor.opening import open_configs

VOXTRAL = {
    "base_model": "mistralai/Voxtral-Mini-3B-2507",
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_modules": r"language_model.model.layers.[\d]+.self_attn.(q|v)_proj",
}


def trained(transformers: str) -> int:
    run = open_configs(VOXTRAL, None, "1x h200", {"transformers": transformers}).run
    assert run.model is not None
    return weights_of(run, run.model).trained_elements


def test_a_pattern_of_former_names_finds_its_modules_under_the_transformers_of_its_time():
    assert trained("5.9.0") == 30 * 16 * (3072 + 4096 + 3072 + 1024)
    assert trained("5.10.1") == 0


def test_every_part_has_its_former_name():
    run = open_configs(VOXTRAL, None, "1x h200", {"transformers": "4.57.1"}).run
    assert run.model is not None
    names = {tensor.name for tensor in run.model.tensors}
    assert {
        "language_model.model.embed_tokens.weight",
        "language_model.model.layers.*.mlp.down_proj.weight",
        "language_model.lm_head.weight",
        "audio_tower.layers.*.fc1.weight",
        "multi_modal_projector.linear_1.weight",
    } <= names
    assert not any(name.startswith("model.") for name in names)
