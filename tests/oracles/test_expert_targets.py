# pyright: basic
"""Which adapters PEFT makes of targets that experts' linear layers were called by: built on the meta device."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from advisor.memory.adapters import adapter_groups
from advisor.models.family import families
from advisor.opening import open_configs
from advisor.run.axolotl.expert_targets import all_linear_by_name

from .test_parameter_counts import ENTRIES, VARIANTS, built
from .without_imports import function

pytestmark = pytest.mark.oracle

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

MOVED = sorted(name for name, row in families().items() if row.expert_targets)
CONVOLVED = {"glm4v_moe"}
"""The tower's patches are a convolution of the name of a linear layer, which PEFT adapts and the advisor leaves out."""
NOT_MOVED = ["qwen2_moe", "phimoe", "gpt_oss"]
"""Mixtures of experts of which PEFT moves nothing."""
SHOWN = {config["model_type"]: config for config in (*VARIANTS, *(one["config"] for one in ENTRIES.values()))}
RANK = 4


def config_of(model_type: str) -> dict[str, Any]:
    """A model of the type with few layers, dense ones first where it has them."""
    config = dict(SHOWN.get(model_type) or transformers.AutoConfig.for_model(model_type).to_dict())
    for values in (config, config.get("text_config") or {}):
        values.update({key: value[:5] for key, value in values.items() if key in {"layer_types", "mlp_layer_types"}})
        values.update({key: 5 for key, value in values.items() if key == "num_hidden_layers" and value > 5})
    return config


def linear_names(model: Any) -> list[str]:
    """axolotl/loaders/adapter.py, find_all_linear_names@0.19.0."""
    paths = (path for path, module in model.named_modules() if isinstance(module, torch.nn.Linear))
    return sorted({path.rpartition(".")[2] for path in paths} - {"lm_head"})


def trained(model: Any, targets: list[str] | str, **keys: Any) -> int:
    adapted = peft.get_peft_model(
        model, peft.LoraConfig(r=RANK, lora_alpha=8, target_modules=targets, **keys), low_cpu_mem_usage=True
    )
    return sum(parameter.numel() for parameter in adapted.parameters() if parameter.requires_grad)


def counted(folder: Path, config: dict[str, Any], **keys: Any) -> int:
    (folder / "config.json").write_text(json.dumps(config))
    written = {"base_model": str(folder), "adapter": "lora", "lora_r": RANK, "lora_alpha": 8, **keys}
    run = open_configs(written, None, "1x a100-80gb", {}).run
    assert run.model is not None
    _, shapes = adapter_groups(run, run.model)
    return sum(torch.Size(shape).numel() * count for shape, count in shapes)


def experts_of(model_type: str) -> list[str]:
    return list(families()[model_type].expert_targets or ("gate_proj", "up_proj", "down_proj"))


@pytest.mark.parametrize("model_type", [name for name in (*MOVED, *NOT_MOVED) if name not in CONVOLVED])
def test_all_linear_layers_are_the_ones_that_peft_adapts(model_type: str, tmp_path: Path):
    config = config_of(model_type)
    model = built(config)
    theirs = trained(model, linear_names(model))
    assert counted(tmp_path, config, lora_target_linear=True) == theirs


@pytest.mark.parametrize("model_type", [name for name in (*MOVED, *NOT_MOVED) if name not in CONVOLVED])
def test_all_linear_layers_by_name_are_the_same_but_for_routers_that_return_their_choice(
    model_type: str, tmp_path: Path
):
    config = config_of(model_type)
    (tmp_path / "config.json").write_text(json.dumps(config))
    run = open_configs({"base_model": str(tmp_path), "lora_target_linear": True}, None, "1x a100-80gb", {}).run
    assert run.model is not None
    names, all_of_them = all_linear_by_name(run, run.model), linear_names(built(config))
    if run.model.family.router_returns_choice:
        assert set(names) == set(all_of_them) - {"router"}
    else:
        assert trained(built(config), names) == trained(built(config), all_of_them)


@pytest.mark.parametrize("model_type", sorted(name for name, row in families().items() if row.router_returns_choice))
def test_a_router_that_returns_its_choice_stops_in_peft(model_type: str):
    config = config_of(model_type)
    adapted = peft.get_peft_model(
        built(config), peft.LoraConfig(r=RANK, target_modules=["router"]), low_cpu_mem_usage=True
    )
    router = next(module for name, module in adapted.named_modules() if name.endswith(".router"))
    rows = torch.empty(4, router.in_features, device="meta")
    assert isinstance(router.base_layer(rows), tuple)
    with pytest.raises(AttributeError, match="tuple"):
        router(rows)


@pytest.mark.parametrize("model_type", ["glm4_moe", "afmoe"])
def test_axolotl_leaves_the_dropout_of_moved_targets_away(model_type: str):
    is_moved = function("loaders/adapter.py", "_peft_will_auto_convert_target_params")
    lora = peft.LoraConfig(r=RANK, target_modules=linear_names(built(config_of(model_type))), lora_dropout=0.05)
    assert is_moved(built(config_of(model_type)), lora)
    with pytest.raises(ValueError, match="dropout"):
        peft.get_peft_model(built(config_of(model_type)), copy.deepcopy(lora), low_cpu_mem_usage=True)
    wrapper = peft.tuners.lora.layer.ParamWrapper
    before = wrapper.__init__
    try:
        function("loaders/adapter.py", "_patch_peft_param_wrapper_dropout")()
        adapted = peft.get_peft_model(built(config_of(model_type)), lora, low_cpu_mem_usage=True)
    finally:
        wrapper.__init__ = before
        del wrapper._axolotl_dropout_patched
    assert any(isinstance(module, wrapper) for module in adapted.modules())


@pytest.mark.parametrize("model_type", [*MOVED, *NOT_MOVED])
def test_named_projections_of_experts_are_adapted_where_peft_moves_them(model_type: str, tmp_path: Path):
    config, names = config_of(model_type), ["o_proj", *experts_of(model_type)]
    assert counted(tmp_path, config, lora_target_modules=names) == trained(built(config), names)


@pytest.mark.parametrize("model_type", ["qwen3_moe", "glm4_moe", "mixtral", "afmoe", "qwen3_next"])
@pytest.mark.parametrize(
    "pattern",
    [
        "all-linear",
        r".*\.(q_proj|gate_proj|up_proj|down_proj|w1|w2|w3)",
        r"model\.layers\.[34]\.self_attn\.(q|v)_proj|.*\.experts\.(gate_proj|up_proj|w1|w3)",
        r".*\.(o_proj|gate)",
    ],
)
def test_a_pattern_is_resolved_as_peft_resolves_it(model_type: str, pattern: str, tmp_path: Path):
    config = config_of(model_type)
    assert counted(tmp_path, config, lora_target_modules=pattern) == trained(built(config), pattern)


def test_parameters_and_ranks_that_are_given_stay(tmp_path: Path):
    config = config_of("glm4_moe")
    names, parameters = ["q_proj", "down_proj"], ["mlp.experts.gate_up_proj"]
    ranks = {"experts.gate_up_proj": 2, "q_proj": 3}
    keys = {"lora_target_modules": names, "lora_target_parameters": parameters, "lora_rank_pattern": ranks}
    theirs = trained(built(config), names, target_parameters=parameters, rank_pattern=ranks)
    assert counted(tmp_path, config, **keys) == theirs


@pytest.mark.parametrize("names", [["gate_proj"], ["q_proj", "up_proj", "down_proj"]])
def test_one_of_two_fused_projections_alone_is_refused(names: list[str]):
    with pytest.raises(ValueError, match="Cannot convert PEFT target"):
        trained(built(config_of("glm4_moe")), names)


def test_dropout_and_dora_are_refused_by_peft_on_experts():
    config, names = config_of("qwen3_moe"), ["q_proj", "gate_proj", "up_proj", "down_proj"]
    with pytest.raises(ValueError, match="lora_dropout"):
        trained(built(config), names, lora_dropout=0.1)
    with pytest.raises(ValueError, match="use_dora"):
        trained(built(config), names, use_dora=True)


@pytest.mark.parametrize("lists", [None, ["layers"], ["blocks", "layers"]])
@pytest.mark.parametrize("layers", [[1], [0, 3, 40]])
def test_layers_to_transform_are_the_ones_that_peft_adapts(layers: list[int], lists: list[str] | None, tmp_path: Path):
    config, targets = config_of("qwen3"), ["q_proj", "down_proj", "lm_head"]
    theirs = trained(built(config), targets, layers_to_transform=layers, layers_pattern=lists)
    keys = {"lora_target_modules": targets, "peft_layers_to_transform": layers, "peft_layers_pattern": lists}
    assert counted(tmp_path, config, **{key: value for key, value in keys.items() if value is not None}) == theirs
