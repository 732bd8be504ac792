"""Which quantized checkpoints can be trained, asked of transformers' own guard with its own quantizers."""

import importlib
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.oracle

CLASSES = {
    "mxfp4": ("quantizer_mxfp4", "Mxfp4HfQuantizer", "Mxfp4Config"),
    "fp8": ("quantizer_finegrained_fp8", "FineGrainedFP8HfQuantizer", "FineGrainedFP8Config"),
}


@pytest.mark.parametrize("dequantize", [False, True])
@pytest.mark.parametrize("method", CLASSES)
def test_weights_that_stay_packed_are_refused_with_adapters_too(method: str, dequantize: bool):
    transformers = pytest.importorskip("transformers")
    peft = pytest.importorskip("peft")
    from transformers.trainer_utils import validate_quantization_for_training

    module, quantizer, config = CLASSES[method]
    found = getattr(importlib.import_module(f"transformers.quantizers.{module}"), quantizer)(
        getattr(transformers, config)(dequantize=dequantize), pre_quantized=True
    )
    tiny = transformers.LlamaConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    model = transformers.LlamaForCausalLM(tiny)
    model.hf_quantizer = found
    found._process_model_before_weight_loading = found._process_model_after_weight_loading = lambda one, **_: one
    found.preprocess_model(model, config=model.config)
    found.postprocess_model(model)
    assert getattr(model, "is_quantized", False) is not dequantize
    for one in (model, SimpleNamespace(peft=True)):
        if one is not model:
            one = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj"]))
        if dequantize:
            validate_quantization_for_training(one)
            continue
        with pytest.raises(ValueError, match="purely quantized" if one is model else "do not support training"):
            validate_quantization_for_training(one)
