"""Quantized experts that stay unpacked once a layer has been recomputed."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, gib, is_mapping
from advisor.memory.activations.experts import FIXED_4BIT, cached_elements, expert_width, never_freed
from advisor.run.axolotl.checkpointing import may_be_reentrant

KWARGS = "gradient_checkpointing_kwargs"
KEY = f"{KWARGS}.use_reentrant"


def finds(run: Run) -> Iterator[Hit]:
    """Checkpoints that leave the experts' forward early, under hooks that then do not run."""
    if run.model is None or not never_freed(run):
        return
    kept = gib(expert_width(run, run.compute_bytes) * cached_elements(run, run.model))
    can = run.activation_checkpointing and may_be_reentrant(run)
    upgrade = f"bitsandbytes {FIXED_4BIT}" if run.quantization == "nf4" else "`load_in_4bit`"
    remedy = f"set `use_reentrant: true`{f', or use {upgrade}' if run.quantization == 'nf4' else ''}"
    yield Hit(
        "quantize_moe_experts",
        f"`quantize_moe_experts` with non-reentrant checkpoints silently keeps every expert unpacked, {kept} on each"
        f" GPU; {remedy if can else f'use {upgrade}'}",
        edits=(edit(run),) if can else (),
    )


def edit(run: Run) -> Set:
    """Said outright, with the key that it belongs to."""
    kwargs = run.config.get(KWARGS)
    if is_mapping(kwargs) and kwargs:
        return Set(KEY, True)
    return Set(KWARGS, {"use_reentrant": True}, after="gradient_checkpointing")


rule = Rule(
    id="unpacked-experts-kept",
    stage="lint",
    title="Let quantized experts go after each layer",
    finds=finds,
    level="warning",
    safe=True,
    why="""
        Quantized experts are unpacked into torch's cache of parametrizations, which a hook after their forward empties.
        A non-reentrant checkpoint stops its recomputation once it has what backward asks for, before that hook: the
        experts of each layer stay. bitsandbytes 0.50 hooks 4-bit experts so that it runs all the same; axolotl's own
        hooks for 8 bits, which it unpacks to fp32, do not.
    """,
    source="axolotl/monkeypatch/moe_quant.py:21-68@0.19.0; torch/nn/utils/parametrize.py@2.13.0;"
    " https://github.com/bitsandbytes-foundation/bitsandbytes/issues/2005,"
    " https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1999,"
    " https://github.com/axolotl-ai-cloud/axolotl/pull/3915",
    examples=lambda: (
        Example(
            gpus="1x h100-80gb",
            stack={"bitsandbytes": "0.49.1"},
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
            """,
        ),
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                rl: dpo
                load_in_8bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                rl: dpo
                load_in_8bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
            """,
        ),
        Example(
            gpus="2x h100-80gb",
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                load_in_8bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                load_in_8bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
        ),
        Example(
            gpus="1x h100-80gb",
            stack={"bitsandbytes": "0.49.1"},
            before="""
                base_model: google/gemma-4-26B-A4B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
            """,
            after="""
                base_model: google/gemma-4-26B-A4B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                gradient_checkpointing: true
            """,
        ),
        but("base_model: Qwen/Qwen3-30B-A3B", "gradient_checkpointing_kwargs:\n  use_reentrant: false", stack={}),
        but(
            "base_model: Qwen/Qwen3-30B-A3B", "adapter: lora", "load_in_8bit: true", without=("load_in_4bit",), stack={}
        ),
        but(
            "base_model: nobody/knows-this-model",
            "adapter: lora",
            "rl: dpo",
            "load_in_8bit: true",
            without=("load_in_4bit",),
            stack={},
        ),
    ),
)
