"""Keep the inputs of layers, and compute the rest again."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.memory.activations import checkpoints


def edits(run: Run) -> RunEdits:
    """On, with the reentrancy that the combination needs."""
    if run.fsdp is not None:
        return {"activation_checkpointing": True, "reentrant": False}
    frozen_under_zero_3 = run.zero_stage == 3 and run.adapter is not None and run.rl is not None
    return {"activation_checkpointing": True} | ({"reentrant": True} if frozen_under_zero_3 else {})


def applies(run: Run) -> bool:
    """Whether nothing is checkpointed yet and the model supports it."""
    refuses = run.model is not None and run.model.family.checkpoints == "none"
    return not checkpoints(run) and not refuses


rule = Rule(
    id="gradient-checkpointing",
    stage="fit",
    title="Recompute activations in backward (gradient checkpointing)",
    label="gradient checkpointing",
    when=applies,
    edits=edits,
    why="""
        Only each layer's input is kept, 2 bytes x hidden size a token; one layer at a time is computed again in
        backward. Frozen weights under ZeRO-3 need reentrant checkpoints (DeepSpeed before 0.19.3), FSDP needs
        non-reentrant ones.
    """,
    cost=(
        "One more forward: about 30 % more time for a full fine-tune, 40 to 50 % with adapters, whose backward is "
        "shorter."
    ),
    because="Only each layer's input is kept; backward computes the rest again.",
    price="One more forward: about 30 % more time, 40 to 50 % with adapters.",
    safe=True,
    source="https://arxiv.org/abs/1604.06174; axolotl docs/choosing_method.qmd; https://github.com/huggingface/transformers/issues/47254",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                micro_batch_size: 1
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                micro_batch_size: 1
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                attn_implementation: flash_attention_2
                gradient_checkpointing: true
            """,
            memory="58.5 -> 29.3 GiB",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "gradient_checkpointing: true"),
        only("base_model: nobody/knows-this", fires=True),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 32768",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            fires=True,
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_config:\n  activation_checkpointing: true",
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "fsdp_version: 2",
            "fsdp_config:\n  activation_checkpointing: true",
            gpus="",
        ),
        but("base_model: mosaicml/mpt-7b", gpus=""),
    ),
)
