"""8-bit layers whose inputs no checkpoint frees."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, gib, is_mapping
from advisor.memory.activations import lasting_bytes
from advisor.run.axolotl.checkpointing import may_be_reentrant

KWARGS = "gradient_checkpointing_kwargs"


def finds(run: Run) -> Iterator[Hit]:
    """8 bits under non-reentrant checkpoints."""
    if run.model is None:
        return
    kept = sum(block.count * lasting_bytes(run, block) for block in run.model.blocks)
    if not kept:
        return
    can = run.activation_checkpointing and may_be_reentrant(run)
    yield Hit(
        "load_in_8bit",
        f"`load_in_8bit` with non-reentrant checkpoints silently keeps the inputs of all 8-bit layers, {gib(kept)} on"
        f" each GPU; {'set `use_reentrant: true`' if can else 'use `load_in_4bit`'}",
        edits=(edit(run),) if can else (),
    )


def edit(run: Run) -> Set:
    """Said outright, with the key that it belongs to."""
    kwargs = run.config.get(KWARGS)
    if is_mapping(kwargs) and kwargs:
        return Set(f"{KWARGS}.use_reentrant", True)
    return Set(KWARGS, {"use_reentrant": True}, after="gradient_checkpointing")


rule = Rule(
    id="eight-bit-inputs-kept",
    stage="lint",
    title="Let the inputs of 8-bit layers go",
    finds=finds,
    level="warning",
    safe=True,
    why="""
        bitsandbytes' 8-bit product keeps its input as an attribute, not as a saved tensor. A non-reentrant checkpoint
        hooks saved tensors alone, so the inputs of every 8-bit linear of every layer stay until the backward is over:
        about as much as the checkpoint was to free. A reentrant one runs the forward without gradients, and nothing
        is kept. 4-bit layers keep no input.
    """,
    source="https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.50.2/bitsandbytes/autograd/_functions.py;"
    " torch/utils/checkpoint.py@2.13.0; axolotl/core/builders/base.py:593-619@0.19.0",
    examples=lambda: (
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                rl: dpo
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                rl: dpo
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
            """,
        ),
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
            """,
        ),
        Example(
            gpus="2x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
        ),
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: google/gemma-4-E2B-it
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
            """,
            after="""
                base_model: google/gemma-4-E2B-it
                adapter: lora
                load_in_8bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
            """,
        ),
        but("base_model: meta-llama/Llama-3.1-8B", "lora_target_linear: true", without=("lora_target_modules",)),
        but(
            "base_model: nobody/knows-this-model",
            "rl: dpo",
            "lora_target_linear: true",
            without=("lora_target_modules",),
        ),
    ),
)
