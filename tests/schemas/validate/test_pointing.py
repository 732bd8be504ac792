"""Which key a library speaks of."""

import pytest

from advisor.schemas.validate.locate import pointed

VALUES = {
    "base_model": "x",
    "datasets": [{"path": "a"}, {"path": "b", "type": {"field": "c"}}],
    "optimizer": "muon",
    "deepspeed": "ds.json",
    "trl": {"beta": 1},
    "fp16": {"enabled": 1},
    "bf16": {"enabled": 2},
    "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}},
}


@pytest.mark.parametrize(
    ("at", "model", "message", "path"),
    [
        (["optimizer"], "", "", "optimizer"),
        (["datasets", 1, "SFTDataset", "path"], "", "", "datasets.1.path"),
        (["datasets", 5, "path"], "", "", "datasets"),
        (["datasets", 1, "DPODataset", "type", "UserDefined", "field"], "", "", "datasets.1.type.field"),
        (["trl", "missing"], "", "", "trl"),
        (["stage"], "DeepSpeedZeroConfig", "", "zero_optimization.stage"),
        (["offload_param", "device"], "DeepSpeedZeroConfig", "", "zero_optimization.offload_param.device"),
        (["enabled"], "DeepSpeedBF16Config", "", "bf16.enabled"),
        (["nowhere"], "", "Field required", ""),
        ([], "", "Require cfg.base_model to be set", "base_model"),
        ([], "", "the optimizer wants another base_model", "base_model"),
        ([], "", "Muon optimizer is currently incompatible with DeepSpeed", "optimizer"),
        ([], "", "incompatible with DeepSpeed", "deepspeed"),
        ([], "", "zero_optimization.offload_param.device=cpu vs nvme", "zero_optimization.offload_param.device"),
        ([], "", "offload_param is for stage 3", "zero_optimization.offload_param"),
        ([], "", "no such thing", ""),
    ],
)
def test_the_key_is_found(at, model, message, path):
    assert pointed(VALUES, {"at": at, "model": model, "message": message, "given": None}) == path


@pytest.mark.parametrize(("given", "path"), [("a", "datasets.0.path"), ("b", "datasets.1.path")])
def test_of_like_items_it_is_the_one_with_the_value(given: str, path: str):
    assert pointed(VALUES, {"at": ["path"], "model": "SFTDataset", "message": "", "given": given}) == path
