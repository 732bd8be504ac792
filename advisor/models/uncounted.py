"""Families that are known by what libraries do with them, and counted by asking transformers (``--trace``)."""

from __future__ import annotations

from advisor.models.family import LIGER_LAYERS, Family

_CUT_ALONE = """
    cohere2_moe cohere2_vision cohere_compass cohere_compass_text exaone4_5 glm46v glm_image minimax muse_glimmer
    phi4_multimodal qwen4_exp qwen4_exp_text step3p5 step3p7
"""

FAMILIES: dict[str, Family] = {
    "bailing_hybrid": Family(embedding_modules=("word_embeddings", "lm_head")),
    "pixtral": Family(liger=LIGER_LAYERS, lora_kernels="unpatchable"),
    "recurrent_gemma": Family(soft_capped=True),
    **{model_type: Family(cut=True) for model_type in _CUT_ALONE.split()},
}
