"""Quantized experts with nothing that they are for."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.run.axolotl.expert_targets import all_linear_by_name

KEY = "quantize_moe_experts"


def finds(run: Run) -> Iterator[Hit]:
    """With all linear layers, without an adapter, or without a base in 4 or 8 bits."""
    if not run.config.get(KEY):
        return
    value = str(run.config.get(KEY)).lower()
    bits = run.config.get("load_in_4bit") or run.config.get("load_in_8bit")
    adapter = run.config.get("adapter")
    if run.config.get("lora_target_linear"):
        why = f"`lora_target_linear` with `{KEY}` is refused by axolotl, since experts are not linear layers here"
        yield Hit("lora_target_linear", f"{why}; name modules, or experts in `lora_target_parameters`", edits(run))
    if adapter not in ("lora", "qlora"):
        # With bits and without any adapter, quantization-without-adapter says so.
        if adapter or not bits:
            yield Hit(KEY, f"`{KEY}: {value}` without LoRA or QLoRA is refused by axolotl; add one, or remove it")
    elif not bits and adapter == "lora":
        yield Hit(KEY, f"`{KEY}: {value}` without `load_in_8bit` is refused by axolotl; add it, or remove this")


def edits(run: Run) -> tuple[Change, ...]:
    """What else is named stays; where nothing is, the linear layers of a model that is known, by their names."""
    gone = Remove("lora_target_linear")
    if run.config.get("lora_target_modules") or run.config.get("lora_target_parameters"):
        return (gone,)
    if run.model is None:
        return ()
    return (Set("lora_target_modules", all_linear_by_name(run, run.model), after="lora_target_linear"), gone)


rule = Rule(
    id="quantize-moe-experts-refused",
    stage="lint",
    title="Quantized experts without what they are for",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        axolotl packs stacked experts in 4 or 8 bits while it loads a frozen base, and trains an adapter with
        them. `lora_target_linear` would look for linear layers among them: modules are named instead, and experts as
        parameters.
    """,
    safe=False,
    source="axolotl/utils/schemas/config.py:1949-1964@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                quantize_moe_experts: true
                load_in_4bit: true
                adapter: qlora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                quantize_moe_experts: true
                load_in_4bit: true
                adapter: qlora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - k_proj
                  - v_proj
                  - o_proj
            """,
        ),
        only("base_model: Qwen/Qwen3-30B-A3B", "quantize_moe_experts: true", gpus="8x h100-80gb", fires=True),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj]",
            gpus="1x a100-80gb",
            fires=True,
        ),
        but(
            "load_in_4bit: true",
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj]",
            "lora_target_linear: false",
            gpus="1x a100-80gb",
        ),
        but("quantize_moe_experts: false"),
        but("load_in_4bit: true", "adapter: k_proj", gpus="1x a100-80gb", fires=True),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "load_in_8bit: true", gpus="1x a100-80gb"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "load_in_4bit: true", gpus="1x a100-80gb"),
        but(
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj]",
            gpus="1x a100-80gb",
        ),
    ),
)
