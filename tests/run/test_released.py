"""Checkpoints that are quantized as released: when their weights are counted packed, and when in bf16."""

import pytest

LORA = "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_modules: [q_proj, v_proj]\n"
GPT, QWEN = "base_model: openai/gpt-oss-20b\n" + LORA, "base_model: Qwen/Qwen3-8B-FP8\n" + LORA
TO_BF16 = "model_quantization_config_kwargs: {dequantize: true}\n"


@pytest.mark.parametrize(
    ("said", "gpu", "method"),
    [
        (GPT, "1x h100-80gb", "mxfp4"),
        (GPT + "model_quantization_config: Mxfp4Config\n", "1x h100-80gb", "mxfp4"),
        (GPT + "model_quantization_config: Mxfp4Config\n" + TO_BF16, "1x h100-80gb", None),
        (GPT + TO_BF16, "1x h100-80gb", "mxfp4"),
        (GPT, "1x v100-32gb", None),
        (QWEN, "1x h100-80gb", "fp8"),
        (QWEN, "1x rtx-4090", "fp8"),
        (QWEN, "1x a100-80gb", None),
        (QWEN, "1x mi300x", "fp8"),
        (QWEN + "model_quantization_config: FineGrainedFP8Config\n" + TO_BF16, "1x h100-80gb", None),
    ],
)
def test_weights_are_packed_unless_yaml_or_card_turn_them_to_bf16(make_run, said: str, gpu: str, method: str | None):
    assert make_run(said, gpu).quantization == method
