"""Train small adapters instead of the weights."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.engine.labels import adapters
from advisor.learning import rate_caveat, rate_edits
from advisor.record import replace
from advisor.run import Adapter
from advisor.run.axolotl.checkpointing import bears_zero_3, for_new_tokens, for_zero_3
from advisor.run.axolotl.lora_kernels import for_attention

RANK = 16


def edits(run: Run) -> RunEdits:
    """Rank 16, alpha 32, every linear layer, the learning rate of an adapter, and what frozen weights ask for.

    QLoRA where 4 bits are asked for, which plain LoRA would not bring about.
    """
    adapter: Adapter = "qlora" if run.is_on("load_in_4bit") else "lora"
    wanted = {"adapter": adapter, "lora_r": RANK, "lora_alpha": 32, "lora_targets": "linear"}
    wanted |= {**rate_edits(run, adapter), **for_new_tokens(run), **for_attention(run)}
    return {**wanted, **for_zero_3(replace(run, adapter=adapter))} if run.zero_stage == 3 else wanted


def applies(run: Run) -> bool:
    """Whether all weights are trained, and nothing stands in the way of an adapter."""
    return (
        run.adapter is None
        and not run.unfrozen_parameters
        and not run.excludes_adapters
        and run.optimizer != "q_galore_adamw8bit"
        and (run.zero_stage < 3 or bears_zero_3(replace(run, adapter="lora")))
    )


def label(before: Run, after: Run) -> str:
    """The kind of adapter, its rank, and the learning rate where that changes."""
    return adapters(before, after, f"{'QLoRA' if after.adapter == 'qlora' else 'LoRA'}, rank {RANK}")


rule = Rule(
    id="lora",
    stage="fit",
    title="Train LoRA adapters instead of all weights",
    label=label,
    when=applies,
    edits=edits,
    why="""
        The weights are frozen: no gradients and no optimizer states for them, 2 bytes a parameter instead of 8 to 16.
        The adapters of rank 16 are about half a percent of the model. LoRA learns best at about ten times the rate of a
        full fine-tune: that is written, within what is usual for the method. Not rank 8, alpha 1 on q and v: adapters
        on attention alone learn less than those on all linear layers, at a higher rank too, and alpha / r scales their
        update: 32 / 16 is 2, 1 / 8 an eighth.
    """,
    cost="What is trained changes: a low-rank update. Large changes of behaviour or new knowledge may suffer.",
    because="Only adapters are trained: a low-rank update of frozen weights.",
    price="Large changes of behaviour or new knowledge may suffer.",
    caveat=rate_caveat,
    safe=False,
    source=(
        "https://arxiv.org/abs/2106.09685; https://arxiv.org/abs/2305.14314 section 4; "
        "https://thinkingmachines.ai/blog/lora/; peft/tuners/lora/layer.py:277@0.20.0; axolotl docs/agents/sft.md; "
        "advisor/learning/bands.json"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
                micro_batch_size: 1
                learning_rate: 2e-5
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
                micro_batch_size: 1
                learning_rate: 2.0e-4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            memory="59.9 -> 18.9 GiB",
        ),
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: allenai/OLMo-2-1124-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: allenai/OLMo-2-1124-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                adapter: lora
                lora_qkv_kernel: false
                lora_o_kernel: false
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        but("learning_rate: 2e-4", fires=True),
        but("learning_rate: 2e-5", "optimizer: lion_8bit", fires=True),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 8",
            "lora_alpha: 16",
            "lora_target_linear: true",
            gpus="1x a100-40gb",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "unfrozen_parameters:\n  - model.layers.31"),
        only("base_model: meta-llama/Llama-3.1-8B", "optimizer: q_galore_adamw8bit"),
        only("base_model: meta-llama/Llama-3.1-8B", "qat:\n  weight_dtype: int8"),
        only("base_model: meta-llama/Llama-3.1-8B", "optimizer: q_galore_adamw8bit", gpus=""),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "gradient_checkpointing: true",
            "selective_checkpointing: mlp",
            "deepspeed: zero.json",
            gpus="",
            deepspeed='{"zero_optimization": {"stage": 3}}',
        ),
    ),
)
