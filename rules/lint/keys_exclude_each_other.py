"""Keys that axolotl does not take together."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, only
from advisor.schemas.refusals import hits


def finds(run: Run) -> Iterator[Hit]:
    """Each pair of the table that the config has."""
    return hits(run, "keys-exclude-each-other")


rule = Rule(
    id="keys-exclude-each-other",
    stage="lint",
    title="Keys that axolotl does not take together",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        axolotl checks its config before it loads anything, and stops at the first pair of settings that contradict
        each other or that no trainer can do at once.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:101-2018@0.19.0, line by line in advisor/schemas/refusals.jsonl",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                sample_packing: true
                attn_implementation: flash_attention_2
                eval_table_size: 5
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                sample_packing: true
                attn_implementation: flash_attention_2
                eval_table_size: 5
                eval_sample_packing: false
            """,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "max_memory:\n  0: 20GiB", "gpu_memory_limit: 20GiB", fires=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: true
                unfrozen_parameters: [lm_head]
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                unfrozen_parameters: [lm_head]
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B", "dataset_exact_deduplication: true", "skip_prepare_dataset: true", fires=True
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "optimizer: polora",
            "peft_use_dora: true",
            without=("dataset_exact_deduplication", "skip_prepare_dataset"),
            fires=True,
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "optimizer: adamw_torch",
            "dpo_use_liger_kernel: true",
            "rl: dpo",
            "dpo_loss_type: [sigmoid]",
            stack={"axolotl": "0.18.0"},
        ),
        but(
            "sequence_len: 4096",
            "sample_packing: true",
            "attn_implementation: flash_attention_2",
            "eval_sample_packing: false",
            "eval_table_size: 5",
            "gradient_checkpointing: true",
            "gradient_checkpointing_kwargs:\n  use_reentrant: false",
            "unfrozen_parameters: [lm_head]",
            without=("dataset_exact_deduplication", "skip_prepare_dataset"),
        ),
    ),
)
