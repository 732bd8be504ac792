"""DPO's fused loss where it trains something else than it is told to."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only, without
from advisor.memory.liger_policy import skips_averaging

KEY = "dpo_use_liger_kernel"


def finds(run: Run) -> Iterator[Hit]:
    """Past DDP, or past what the model does to its logits."""
    if run.rl != "dpo" or run.loss != "liger-fused":
        return
    edit = Set(KEY, False)
    head = f"`{KEY}: true`"
    if skips_averaging(run):
        alone = "silently averages no gradients under plain DDP: each GPU goes its own way, and one is saved"
        yield Hit(KEY, f"{head} {alone}; set it to `false`, or shard with ZeRO-2", edits=(edit,))
    elif run.model is not None and run.model.family.shapes_logits:
        name = run.base_model.rpartition("/")[2]
        left = f"silently leaves out the cap or the scale of the logits of {name}: it trains by another loss"
        yield Hit(KEY, f"{head} {left}; set it to `false`", edits=(edit,))


rule = Rule(
    id="dpo-liger-trains-otherwise",
    stage="lint",
    title="DPO's fused loss trains otherwise here",
    finds=finds,
    level="warning",
    proof="read",
    safe=False,
    why="""
        TRL gives Liger the hidden states and the head. It calls the model past its wrapper, and only for ZeRO-3 and
        FSDP through it: torch's DDP averages gradients of its own forward alone, so each GPU goes its own way. What a
        model does to its logits after the head (Gemma 2 caps them, Granite and Cohere scale them) is not told to the
        loss.
    """,
    cost="The logits of both answers are made: more memory, the loss that was asked for.",
    source=(
        "trl/trainer/dpo_trainer.py:1221-1290,1725-1738@1.9.0; liger_kernel/chunked_loss/dpo_loss.py@0.8.1; "
        "torch/nn/parallel/distributed.py@2.13.0"
    ),
    examples=lambda: (
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.2-1B
                rl: dpo
                dpo_use_liger_kernel: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
            """,
            after="""
                base_model: meta-llama/Llama-3.2-1B
                rl: dpo
                dpo_use_liger_kernel: false
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
            """,
        ),
        but(gpus="1x a100-80gb"),
        but("deepspeed: zero.json", deepspeed='{"zero_optimization": {"stage": 2}}'),
        but("rl: kto"),
        but(fixed=True),
        but("base_model: nobody/knows-this", gpus="1x a100-80gb"),
        but("base_model: google/gemma-2-2b-it", gpus="1x a100-80gb", fires=True),
        without(KEY),
        only(
            "base_model: google/gemma-2-2b-it",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_fused_linear_cross_entropy: true",
        ),
    ),
)
