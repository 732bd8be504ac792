"""Linear layers that axolotl has bitsandbytes leave as they are."""

import pytest

from advisor.memory.weights import quantized_width
from advisor.opening import open_configs


@pytest.mark.parametrize(
    ("model", "whole"),
    [("tiiuae/Falcon-H1-1.5B-Deep-Base", {"out_proj"}), ("meta-llama/Llama-3.1-8B", {"lm_head"})],
)
def test_falcon_h1_keeps_its_output_projections_and_not_its_head(model: str, whole: set[str]):
    run = open_configs({"base_model": model, "adapter": "qlora", "load_in_4bit": True}, None, "1x h100").run
    assert run.model is not None
    linears = [tensor for tensor in run.model.tensors if tensor.linear]
    assert {one.module.rsplit(".", 1)[-1] for one in linears if quantized_width(run, one) is None} == whole
