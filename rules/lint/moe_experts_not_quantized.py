"""Experts that stay in half precision, or in fp32, with a quantized base."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, gib, only
from advisor.memory.weights import unreached_experts
from advisor.models import Architecture
from advisor.run.axolotl.expert_targets import all_linear_by_name

KEY = "quantize_moe_experts"


def finds(run: Run) -> Iterator[Hit]:
    """Where experts are stacked in one tensor, which bitsandbytes passes by; axolotl reaches three dimensions."""
    model = run.model
    elements = unreached_experts(run, model) if model is not None else 0
    if model is None or not elements:
        return
    bits, width = ("load_in_4bit", 4) if run.quantization == "nf4" else ("load_in_8bit", 8)
    as_it_is = 4 if run.upcasts_unquantized and run.zero is None else 2
    stay = f"{gib(as_it_is * elements)} in {'fp32' if as_it_is == 4 else 'half precision'}"
    part = f"{elements / model.parameters:.0%} of the weights"
    asked = f"`{KEY}: true` brings them to {gib(width * elements // 8)}"
    message = f"`{bits}: true` does not reach this model's experts, {part}: they stay at {stay}; {asked}"
    yield Hit(bits, message, edits(run, model, bits) if run.zero is None else ())


def edits(run: Run, model: Architecture, bits: str) -> tuple[Change, ...]:
    """On; all linear layers at once are then refused, so they are named instead."""
    on = Set(KEY, True, after=bits)
    if not run.is_on("lora_target_linear"):
        return (on,)
    named = Set("lora_target_modules", all_linear_by_name(run, model), after="lora_alpha")
    return (on, Remove("lora_target_linear"), named)


rule = Rule(
    id="moe-experts-not-quantized",
    stage="lint",
    title="Experts that quantization does not reach",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        transformers 5 keeps the experts of a layer in stacked tensors, where version 4 had linear layers. bitsandbytes
        replaces linear layers only, so the larger part of the model is loaded as it is; PEFT's preparation then turns
        what is not quantized to fp32. axolotl can quantize the experts itself while it loads them.
    """,
    cost="As for QLoRA. `lora_target_linear` is then refused: the layers that it means are named instead.",
    safe=False,
    source=(
        "transformers/integrations/bitsandbytes.py:189-208@5.16.1; axolotl/loaders/model.py:1137-1151@0.19.0; "
        "peft/utils/other.py:197-202@0.20.0; https://github.com/axolotl-ai-cloud/axolotl/issues/3374"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
            """,
        ),
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: qlora
                load_in_4bit: true
                quantize_moe_experts: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - k_proj
                  - v_proj
                  - o_proj
            """,
        ),
        but("lora_target_modules: [q_proj, v_proj]", without=("lora_target_linear",), stack={"transformers": "4.57.0"}),
        but("base_model: Qwen/Qwen2.5-7B"),
        only("base_model: Qwen/Qwen3-30B-A3B"),
        only("base_model: nobody/knows-this"),
        but("base_model: openai/gpt-oss-20b", without=("lora_target_linear",)),
        but("llama4_linearized_experts: true"),
        but("quantize_moe_experts: true"),
        but("base_model: LiquidAI/LFM2-1.2B"),
        but("base_model: databricks/dbrx-base"),
    ),
)
