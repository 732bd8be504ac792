"""Reduce FSDP's gradients in each micro-step."""

from advisor import Example, Rule, Run, but, only


def applies(run: Run) -> bool:
    """Whether FSDP keeps gradients whole from one micro-step to the next, and could add up what it has reduced."""
    accumulates = run.fsdp is not None and run.world_size > 1 and run.gradient_accumulation_steps > 1
    return accumulates and not run.sync_each_batch and not run.offloads_fsdp1


rule = Rule(
    id="sync-each-batch",
    stage="fit",
    title="Reduce gradients in each micro-step, instead of keeping them whole until the last",
    label="gradients reduced in each micro-step",
    when=applies,
    edits=lambda run: {"sync_each_batch": True},
    why="""
        The Trainer lets FSDP reduce gradients in the last micro-step alone, to save traffic: until then every GPU keeps
        the gradients of all trained weights whole, 2 bytes a parameter, however many GPUs there are.
    """,
    cost="A reduce-scatter in each micro-step instead of one a step.",
    because="No GPU keeps gradients whole from one micro-step to the next.",
    price="A reduce-scatter in each micro-step instead of one a step.",
    safe=True,
    source=(
        "transformers/trainer.py:1758-1767@5.16.1; accelerate/accelerator.py:1164-1169@1.13.0; "
        "https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_accumulation_steps: 4
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  cpu_ram_efficient_loading: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_accumulation_steps: 4
                accelerator_config:
                  gradient_accumulation_kwargs:
                    sync_each_batch: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  cpu_ram_efficient_loading: true
            """,
            memory="92.6 -> 40.0 GiB",
        ),
        but(
            "gradient_accumulation_steps: 1",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=(
                "micro_batch_size",
                "gradient_checkpointing",
                "gradient_checkpointing_kwargs",
                "attn_implementation",
            ),
        ),
        only(
            "base_model: Qwen/Qwen2.5-32B",
            "gradient_accumulation_steps: 4",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="",
        ),
        only(
            "base_model: Qwen/Qwen2.5-32B",
            "gradient_accumulation_steps: 4",
            "gradient_checkpointing: true",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            "accelerator_config:\n  gradient_accumulation_kwargs:\n    sync_each_batch: true",
            gpus="8x a100-80gb",
        ),
        only(
            "base_model: Qwen/Qwen2.5-32B",
            "gradient_accumulation_steps: 4",
            "gradient_checkpointing: true",
            "deepspeed: zero.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 3}}',
        ),
        only(
            "base_model: Qwen/Qwen2.5-32B",
            "gradient_accumulation_steps: 4",
            "fsdp_version: 1",
            "fsdp_config: {offload_params: true}",
            gpus="8x a100-80gb",
        ),
    ),
)
