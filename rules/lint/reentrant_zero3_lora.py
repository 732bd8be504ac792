"""Non-reentrant checkpoints around weights that ZeRO-3 shards and nobody trains."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, is_mapping, only, without
from advisor.run.axolotl.checkpointing import FIXED, may_be_reentrant, stops_zero_3

KEY = "gradient_checkpointing_kwargs.use_reentrant"


def finds(run: Run) -> Iterator[Hit]:
    """ZeRO-3, frozen weights, and checkpoints that compare shapes."""
    if run.zero_stage != 3 or not stops_zero_3(run):
        return
    given = run.config.at(KEY) is False
    can = may_be_reentrant(run)
    remedy = "set `use_reentrant: true`" if can else "use ZeRO-2, or no checkpointing"
    cause = "`use_reentrant: false`" if given else "`gradient_checkpointing`, non-reentrant here,"
    yield Hit(
        KEY if given else "gradient_checkpointing",
        f"{cause} stops the first backward under ZeRO-3 where weights are frozen (CheckpointError, until DeepSpeed"
        f" {FIXED}); {remedy}",
        edits=(edit(run),) if can else (),
    )


def edit(run: Run) -> Set:
    """Said outright, with the key that it belongs to."""
    kwargs = run.config.get("gradient_checkpointing_kwargs")
    if is_mapping(kwargs) and kwargs:
        return Set(KEY, True)
    return Set("gradient_checkpointing_kwargs", {"use_reentrant": True}, after="gradient_checkpointing")


rule = Rule(
    id="reentrant-zero3-lora",
    stage="lint",
    title="Non-reentrant checkpoints around weights that ZeRO-3 shards and nobody trains",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    safe=True,
    why="""
        While a layer is recomputed, ZeRO-3 frees its weights after use. torch keeps the frozen ones by reference, finds
        them empty where the forward had them full, and stops: norms under LoRA, or whatever `unfrozen_parameters`
        leaves out. Reentrant checkpoints compare nothing. Supervised training of adapters has them by default, and DPO,
        KTO and GRPO because TRL insists; ORPO, SimPO and `unfrozen_parameters` have the others.
    """,
    source="torch/utils/checkpoint.py:918@2.13.0; axolotl/core/builders/base.py:611-619@0.19.0;"
    " trl/trainer/dpo_trainer.py:672-689, trl/experimental/orpo/orpo_trainer.py:381-387@1.9.0;"
    " https://github.com/deepspeedai/DeepSpeed/pull/8148",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                rl: orpo
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                rl: orpo
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
        ),
        without("rl"),
        but("rl: dpo"),
        but("gradient_checkpointing_kwargs:\n  use_reentrant: false", without=("rl",), stack={"deepspeed": "0.19.3"}),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "gradient_checkpointing: true",
            "gradient_checkpointing_kwargs:\n  use_reentrant: false",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            gpus="8x a100-80gb",
        ),
        but(without=("deepspeed",), gpus="1x a100-80gb"),
    ),
)
