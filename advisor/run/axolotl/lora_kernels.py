"""axolotl's fused LoRA kernels: the models into whose attention they cannot be patched."""

from advisor.run import Run
from advisor.run.edits import RunEdits

KEYS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "lora_embedding_kernel")
STOPS = """
    afmoe bloom cohere dbrx deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 falcon falcon_h1 falcon_mamba flex_olmo
    gemma3n gemma3n_text glm4_moe glm4_moe_lite glm4v glm4v_moe glm4v_moe_text glm4v_text glm_moe_dsa gpt2 gpt_bigcode
    gpt_neo gpt_neox gptj internvl lfm2 lfm2_moe lfm2_vl llama4 llama4_text llava llava_next llava_onevision mamba
    mamba2 minimax_m2 mistral4 mllama mllama_text_model mpt olmo olmo2 olmo3 olmoe opt paligemma phi phi3 pixtral
    qwen2_5_vl qwen2_5_vl_text qwen2_vl qwen2_vl_text qwen3_5_moe_text qwen3_5_text qwen3_vl_moe qwen3_vl_moe_text
    qwen3_vl_text stablelm voxtral
"""
UNPATCHABLE = frozenset(STOPS.split())
"""Model types whose attention class axolotl does not find, or whose code it does not recognise: then it stops.

axolotl/monkeypatch/lora_kernels.py:130-220,303-306@0.19.0, asked with transformers 5.16.1 about every model type that
is counted here.
"""


UNBOUND = frozenset({"nemotron_h"})
"""Patched, but not bound: their attention is not where axolotl then looks for it (lora_kernels.py:317-325@0.19.0)."""
FP32_NORMS = frozenset({"phimoe", "starcoder2"})
"""Under autocast ``nn.LayerNorm`` gives fp32, and the kernels add in place, where autocast does not help.

axolotl/kernels/lora.py:265-273@0.19.0: ``addmm_`` of a half-precision product and an fp32 matrix.
"""


def stops(run: Run) -> bool:
    """Whether the kernels for attention stop a run of this model."""
    return why_stops(run) != ""


def why_stops(run: Run) -> str:
    """What happens to a run with the kernels for attention; empty if they work."""
    kind = run.model.model_type if run.model is not None else ""
    if kind in UNPATCHABLE:
        return f"cannot be patched into the attention of `{kind}`: axolotl stops before the model is loaded"
    if kind in UNBOUND:
        return f"are not bound to the attention of `{kind}`, which calls them: the first forward stops"
    if kind in FP32_NORMS and run.autocast and run.precision != "fp32":
        return f"cannot add what the fp32 norms of `{kind}` give them: the first forward stops"
    return ""


def for_attention(run: Run) -> RunEdits:
    """What an adapter asks for with it: axolotl would turn the kernels on by itself, and stop."""
    alone = run.rl is None and not run.config.get("trust_remote_code") and not run.config.get("nvfp4_merge_aware")
    named = [run.config.get(key) for key in KEYS]
    asked = any(run.config.get(key) for key in ("lora_qkv_kernel", "lora_o_kernel"))
    comes = asked or (alone and all(value is None for value in named))
    return {"lora_attention_kernels": False} if stops(run) and comes else {}
