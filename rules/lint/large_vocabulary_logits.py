"""The logits take a large part of the memory, and need not exist."""

from collections.abc import Iterator

from advisor import GIB, Change, Estimate, Example, Hit, Rule, Run, but, gib, only
from advisor.engine.registry import built_in_rules
from advisor.engine.steps import alternatives
from advisor.memory import estimate
from advisor.run.axolotl import changes
from advisor.run.axolotl.edits import FUSED_LOSSES
from advisor.run.axolotl.flags import plugin_names
from advisor.run.build import with_config

PART = 4
LEAST = 4 * GIB


def finds(run: Run) -> Iterator[Hit]:
    """A run that fits, fills half of the card, and would need a quarter and 4 GiB less with a fused loss."""
    found = estimate(run)
    if found is None or run.model is None or found.on_gpu == "does-not-fit":
        return
    listed = plugin_names(run.config)
    if any(run.is_on(key) and plugin.rpartition(".")[2] not in listed for key, plugin in FUSED_LOSSES.items()):
        return  # asked for, and only the plugin is missing: another rule says so
    if logits(found) < LEAST or found.needed.high < found.usable // 2:
        return
    edits = fused(run)
    after = estimate(with_config(run, edits)) if edits else None
    if after is None or found.allocated_peak - after.allocated_peak < max(LEAST, found.allocated_peak // PART):
        return
    name, installed = named(edits)
    yield Hit(
        "sequence_len" if run.config.has("sequence_len") else "base_model",
        f"{run.tokens:,} tokens x {run.model.vocab_size:,} vocabulary entries make {gib(logits(found))} of logits"
        f" and loss; {name} brings the peak from {gib(found.allocated_peak)} to {gib(after.allocated_peak)}",
        edits=tuple(edits) if installed else (),
    )


def named(edits: list[Change]) -> tuple[str, bool]:
    """What is switched on, and whether it comes with axolotl."""
    last = edits[-1].path
    return (f"`{last}: true`", True) if last != "plugins" else ("CutCrossEntropyPlugin", False)


def logits(found: Estimate) -> int:
    """Bytes of the logits and of what the loss makes of them, at their largest in training."""
    return max(phase.parts()["loss"] for phase in found.phases if phase.name != "evaluation")


def fused(run: Run) -> list[Change]:
    """What switches the fused loss on, for a model that has one."""
    step = built_in_rules("fit")["fused-loss"]
    return changes(run.config, alternatives(step, run)[0]) if step.when(run) else []


rule = Rule(
    id="large-vocabulary-logits",
    stage="lint",
    title="The logits take a large part of the memory, and need not exist",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    safe=True,
    why="""
        A plain loss holds 10 to 12 bytes for every token and every vocabulary entry, in fp32. A fused loss
        computes them in chunks and keeps none: room for longer rows or a larger micro batch, and less to read and
        write. A run that does not fit gets the same as a step of its plan.
    """,
    source="advisor/memory/loss.py; https://arxiv.org/abs/2410.10989 (Liger); https://arxiv.org/abs/2411.09009 (cut)",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 8192
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 8192
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
        ),
        but("sequence_len: 1024"),
        but("cut_cross_entropy: true"),
        but(without=("attn_implementation",), gpus="1x a100-80gb"),
        but(without=("attn_implementation",), gpus="1x rtx-3060"),
        only("base_model: meta-llama/Llama-3.1-8B", gpus=""),
        but("rl: grpo", without=("attn_implementation",)),
        but(
            "base_model: meta-llama/Llama-3.2-1B",
            "process_reward_model: true",
            without=("gradient_checkpointing", "attn_implementation"),
        ),
        but(
            "adapter: lora",
            "micro_batch_size: 1",
            without=("load_in_4bit", "gradient_checkpointing"),
            gpus="1x a100-80gb",
        ),
        only(
            "base_model: facebook/opt-350m",
            "sequence_len: 2048",
            "micro_batch_size: 40",
            "gradient_checkpointing: true",
        ),
    ),
)
