"""Attention without the matrix of scores."""

from advisor import Example, Rule, Run, but, only
from advisor.run.axolotl.attention import masks_images, without_scores

KERNELS = {"flash_attention_2": "flash", "flex_attention": "flex", "sdpa": "sdpa"}
BECAUSE = {
    "flash": "It keeps no attention scores, and a full fine-tune no fp32 embeddings.",
    "flex": "It keeps no attention scores, and a full fine-tune no fp32 embeddings.",
    "sdpa": "It keeps no attention scores, and the images' own mask.",
}
PRICES = {
    "flash": "FlashAttention 2 needs its package.",
    "flex": "It is compiled in the first step.",
    "sdpa": "None.",
}
LABELS = {"flash": "FlashAttention 2", "flex": "flex attention", "sdpa": "SDPA, with the mask of images"}


def applies(run: Run) -> bool:
    """Whether this card and model have such a kernel, and it is not in use yet."""
    if run.model is None or run.precision == "fp32":
        return False
    instead = without_scores(run)
    is_there = instead != "sdpa" or masks_images(run)
    return is_there and run.attention in {"eager", "sdpa"} - {instead}


rule = Rule(
    id="flash-attention",
    stage="fit",
    title="Use attention that keeps no scores",
    label=lambda _before, after: LABELS[after.attention],
    when=applies,
    edits=lambda run: {"attention": KERNELS[without_scores(run)]},
    why="""
        Eager attention keeps scores of sequence x sequence for every head. FlashAttention and flex attention keep none.
        gpt-oss has sinks, which FlashAttention 2 does not know, and the images of Gemma 3 and PaliGemma see all of
        themselves by a mask that it does not take: there it is SDPA. In a full fine-tune axolotl also leaves
        embeddings, head and norms in fp32 as long as attention is eager or sdpa.
    """,
    cost="""
        FlashAttention 2 needs the flash-attn package and a GPU of compute capability 8.0 or later; flex attention is
        compiled in the first step.
    """,
    because=lambda _before, after: BECAUSE[after.attention],
    price=lambda _before, after: PRICES[after.attention],
    safe=True,
    source=(
        "https://arxiv.org/abs/2307.08691; axolotl/loaders/model.py:471-489@0.19.0; "
        "transformers/models/gpt_oss/modeling_gpt_oss.py:386-403@5.16.1"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                micro_batch_size: 2
                attn_implementation: eager
                gradient_checkpointing: true
                optimizer: adamw_torch_fused
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                micro_batch_size: 2
                attn_implementation: flash_attention_2
                gradient_checkpointing: true
                optimizer: adamw_torch_fused
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            memory="82.6 -> 60.8 GiB",
        ),
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: openai/gpt-oss-20b
                model_quantization_config: Mxfp4Config
                model_quantization_config_kwargs:
                  dequantize: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, k_proj, v_proj, o_proj]
                sequence_len: 4096
                micro_batch_size: 1
                attn_implementation: eager
                gradient_checkpointing: true
            """,
            after="""
                base_model: openai/gpt-oss-20b
                model_quantization_config: Mxfp4Config
                model_quantization_config_kwargs:
                  dequantize: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, k_proj, v_proj, o_proj]
                sequence_len: 4096
                micro_batch_size: 1
                attn_implementation: flex_attention
                gradient_checkpointing: true
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-1.5B",
            "attn_implementation: eager",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            gpus="1x v100-32gb",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", gpus="", fires=True),
        but("sequence_len: 4096", "micro_batch_size: 2", "bf16: false", gpus="1x a100-80gb"),
        but("attn_implementation: flash_attention_2", gpus="1x a100-80gb"),
        only("base_model: nobody/knows-this"),
        but("base_model: bigscience/bloom-7b1"),
        only("base_model: google/gemma-4-31B-it", "attn_implementation: sdpa", gpus="1x h100-80gb"),
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: google/gemma-3-27b-it
                processor_type: AutoProcessor
                skip_prepare_dataset: true
                remove_unused_columns: false
                sequence_len: 8192
                micro_batch_size: 1
                attn_implementation: eager
                gradient_checkpointing: true
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            fires=True,
        ),
        but("attn_implementation: sdpa"),
        only("base_model: mosaicml/mpt-7b", "attn_implementation: eager"),
    ),
)
