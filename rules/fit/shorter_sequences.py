"""Shorter rows, last of all."""

from advisor import Example, Rule, Run, RunEdits, only

SHORTEST = 512


def edits(run: Run) -> list[RunEdits]:
    """Half, a quarter and so on, in multiples of 64."""
    halves = [run.sequence_len // 2**n for n in range(1, 8)]
    return [{"sequence_len": length} for length in halves if length >= SHORTEST and length % 64 == 0]


rule = Rule(
    id="shorter-sequences",
    stage="fit",
    title="Shorten the sequences",
    label=lambda before, after: f"sequence_len {before.sequence_len} -> {after.sequence_len}",
    when=lambda run: bool(edits(run)),
    edits=edits,
    why="""
        Activations and logits grow with the length of a row. Longer samples are cut or dropped, so look at your data's
        lengths first.
    """,
    cost="Other data is trained on: samples longer than this are cut or dropped.",
    because="Activations and logits grow with the length of a row.",
    price="Other data is trained on: longer samples are cut or dropped.",
    safe=False,
    source="axolotl docs/training_stability.qmd",
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
                sequence_len: 32768
                micro_batch_size: 1
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
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="61.3 -> 19.7 GiB",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 512", gpus="1x rtx-4090"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        only("base_model: nobody/knows-this", "sequence_len: 1100"),
    ),
)
