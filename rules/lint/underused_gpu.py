"""A GPU of which most stays empty."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, gib, only
from advisor.engine.registry import built_in_rules
from advisor.memory import estimate

USED = 0.5


def finds(run: Run) -> Iterator[Hit]:
    """Where less than half is ever reserved, and no rule for speed knows how to spend the rest on the same training."""
    found = estimate(run)
    if found is None or found.reserved_peak.high >= USED * found.usable:
        return
    if any(rule.when(run) for rule in built_in_rules("speed").values()):
        return
    message = (
        f"{gib(found.usable - found.reserved_peak.high)} of {gib(found.usable)} stay free: raise `micro_batch_size: "
        f"{run.micro_batch_size}`, and the global batch with it, or take smaller or fewer GPUs"
    )
    yield Hit("micro_batch_size" if run.config.has("micro_batch_size") else "", message)


rule = Rule(
    id="underused-gpu",
    stage="lint",
    title="A GPU of which most stays empty",
    finds=finds,
    level="note",
    proof="read",
    why="""
        What can be given back at the same global batch is offered by the rules for speed: a larger micro batch for
        fewer accumulation steps, no checkpointing, less offloading. Where none of them has anything to offer and more
        than half of the card stays free, the rest can only go into a larger batch or longer rows, or be saved.
    """,
    safe=False,
    source="advisor/memory/ranges.py; https://github.com/axolotl-ai-cloud/axolotl/issues/2688",
    examples=lambda: (
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 1024
                sample_packing: false
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin
            """,
            fires=True,
        ),
        but("gradient_accumulation_steps: 8", without=("sample_packing", "plugins")),
        only("base_model: Qwen/Qwen2.5-1.5B", gpus=""),
        only("base_model: Qwen/Qwen2.5-1.5B", "micro_batch_size: 16"),
    ),
)
