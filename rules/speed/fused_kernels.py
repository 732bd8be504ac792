"""Fused norms, rotary embeddings and gated units."""

from advisor import Example, Rule, Run, but, only

WANTED = ("rms_norm", "glu", "rope")


def wanted(run: Run) -> tuple[str, ...]:
    """The layers that Liger fuses in this model."""
    return tuple(layer for layer in WANTED if run.model is not None and layer in run.model.family.liger)


def applies(run: Run) -> bool:
    """Whether Liger is in use already, but not for all layers that it could fuse."""
    listed = "LigerPlugin" in str(run.config.get("plugins"))
    return listed and run.adapter is None and run.tensor_parallel_size == 1 and not set(wanted(run)) <= run.liger


rule = Rule(
    id="fused-kernels",
    stage="speed",
    title="Fuse norms, rotary embeddings and gated units with Liger",
    label=lambda _before, after: f"Liger: {', '.join(wanted(after))}",
    when=applies,
    edits=lambda run: {"liger": wanted(run)},
    why="""
        The plugin is loaded already. Its fused layers read and write activations once instead of several times, and
        keep fewer of them.
    """,
    cost="None in quality; Triton compiles the kernels in the first step.",
    because="Fused layers read and write activations once, and keep fewer of them.",
    price="None in quality; Triton compiles the kernels in the first step.",
    safe=True,
    source="https://arxiv.org/abs/2410.10989",
    examples=lambda: (
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_rope: true
                liger_glu_activation: true
                liger_rms_norm: true
                liger_fused_linear_cross_entropy: true
            """,
            memory="16.0 -> 14.4 GiB",
        ),
        only("base_model: Qwen/Qwen2.5-1.5B", "sequence_len: 2048", gpus="1x h100-80gb"),
        only(
            "base_model: Qwen/Qwen2.5-1.5B",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "tensor_parallel_size: 2",
        ),
        only(
            "base_model: Qwen/Qwen2.5-1.5B",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
        ),
        but(
            without=("sequence_len", "micro_batch_size", "attn_implementation", "liger_fused_linear_cross_entropy"),
            gpus="1x a100-80gb",
            fixed=True,
        ),
        only("base_model: nobody/knows-this", "plugins:\n  - axolotl.integrations.liger.LigerPlugin"),
        only("base_model: openai-community/gpt2", "plugins:\n  - axolotl.integrations.liger.LigerPlugin"),
        but(
            "tensor_parallel_size: 2",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "liger_fused_linear_cross_entropy"),
            gpus="",
        ),
    ),
)
