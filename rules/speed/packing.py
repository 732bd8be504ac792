"""Fill rows instead of padding them."""

from advisor import Example, Rule, Run, but, only
from advisor.run.axolotl.attention import may_pack


def applies(run: Run) -> bool:
    """Whether rows are padded, to the full length or by default, and the attention kernel could keep samples apart.

    Rows that are scored as a whole have no labels to pack.
    """
    data = bool(run.config.get("datasets")) and not run.config.get("pretraining_dataset")
    config = run.config
    to_the_full = config.get("sample_packing") is False and config.get("pad_to_sequence_len") is True
    return may_pack(run) and data and (to_the_full or not config.has("sample_packing"))


rule = Rule(
    id="packing",
    stage="speed",
    title="Pack several samples into a row",
    label="sample packing",
    when=applies,
    edits=lambda run: {"sample_packing": True},
    why="""
        Short samples leave most of a padded row empty. Packed rows are full, and the kernel keeps samples apart.
    """,
    cost="More samples in a step: the number of steps, and with it the schedule, changes.",
    because="Packed rows are full; short samples leave padded ones mostly empty.",
    price="More samples in a step: the number of steps and the schedule change.",
    safe=False,
    source="axolotl/utils/schemas/enums.py:131-143@0.19.0; https://arxiv.org/abs/2107.02027",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                sample_packing: true
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
            """,
            memory="9.3 -> 9.3 GiB",
        ),
        but(
            "sample_packing: false", without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "datasets")
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "attn_implementation: flash_attention_2",
            "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca",
            "rl: dpo",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "attn_implementation: flash_attention_2",
            "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca",
            "sample_packing: false",
        ),
        but("sample_packing: false\npad_to_sequence_len: true", fires=True),
        but("sample_packing: false\npad_to_sequence_len: false"),
        but("sample_packing: true\npad_to_sequence_len: true"),
        but("reward_model: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "attn_implementation: flash_attention_2",
            "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca",
            "pretraining_dataset: allenai/c4",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "attn_implementation: flash_attention_2"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "attn_implementation: flash_attention_2",
            "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca",
            "rl: dpo",
            gpus="",
        ),
    ),
)
