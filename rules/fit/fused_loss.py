"""The loss without the logits."""

from advisor import Example, Rule, Run, RunEdits, but, only


def edits(run: Run) -> RunEdits:
    """Liger, which axolotl installs, before cut cross-entropy, which needs a package of its own."""
    assert run.model is not None
    return {"loss": "liger-fused" if run.rl or "loss" in run.model.family.liger else "cut"}


def applies(run: Run) -> bool:
    """Whether logits are materialised in training and a fused loss knows the model."""
    if run.model is None or run.loss not in {"plain", "liger"} or run.tensor_parallel_size > 1:
        return False
    if run.classifier is not None:
        return False
    known = ("loss" in run.model.family.liger or run.model.family.cut) and run.rl is None
    return (known or run.rl == "dpo") and run.precision != "fp32"


def label(_before: Run, after: Run) -> str:
    """The loss that is written."""
    return f"fused loss ({'Liger' if after.loss == 'liger-fused' else 'cut cross-entropy'})"


rule = Rule(
    id="fused-loss",
    stage="fit",
    title="Compute the loss without materialising the logits",
    label=label,
    when=applies,
    edits=edits,
    why="""
        The plain loss holds 10 to 14 bytes for every token and every vocabulary entry, in fp32: with 128k entries
        and 8192 tokens that is 12 GiB or more. A fused loss computes them in chunks. In DPO the plain loss holds 12
        bytes under autocast and 8 under DeepSpeed, the fused one 10 to 12.
    """,
    cost="None in quality. Liger comes with axolotl; cut cross-entropy must be installed from axolotl's fork.",
    because="The logits are computed in chunks, not all at once.",
    price="None in quality; cut cross-entropy is installed from axolotl's fork.",
    safe=True,
    source="https://arxiv.org/abs/2410.10989 (Liger); https://arxiv.org/abs/2411.09009 (cut cross-entropy)",
    examples=(
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
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            memory="19.7 -> 9.4 GiB",
        ),
        but(
            "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
            without=("micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "reward_model: true", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B", "process_reward_model: true", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B", "tensor_parallel_size: 2"),
        but(
            "bf16: false",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: nobody/knows-this"),
        but(
            "rl: kto",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: openai-community/gpt2"),
        only("base_model: meta-llama/Llama-3.1-8B", "tensor_parallel_size: 2", gpus=""),
    ),
)
