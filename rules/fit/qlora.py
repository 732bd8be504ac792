"""Quantize the frozen base to 4 bits."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.engine.labels import adapters
from advisor.learning import rate_caveat, rate_edits
from advisor.record import replace
from advisor.run.axolotl.checkpointing import bears_zero_3, for_new_tokens, for_zero_3
from advisor.run.axolotl.lora_kernels import for_attention

RANK = 16


def edits(run: Run) -> RunEdits:
    """4 bits for the base; the adapter's own keys and learning rate where there was none."""
    wanted: dict[str, object] = {"adapter": "qlora", "load_in_4bit": True, **for_attention(run)}
    if run.adapter is None:
        wanted |= {"lora_r": RANK, "lora_alpha": 32, "lora_targets": "linear"}
        wanted |= {**rate_edits(run, "qlora"), **for_new_tokens(run)}
    if run.zero_stage == 3 and run.adapter is None:
        wanted |= for_zero_3(replace(run, adapter="qlora"))
    return wanted | ({"reentrant": False} if run.rl and run.activation_checkpointing and run.reentrant else {})


def label(before: Run, after: Run) -> str:
    """What becomes of the base, and of the learning rate where there was no adapter."""
    return "QLoRA: 4-bit base" if before.adapter else adapters(before, after, f"QLoRA: 4-bit base, rank {RANK}")


def refused(run: Run) -> bool:
    """FSDP2 takes no 4-bit base loaded on one rank, nor one in preference training (validation.py:1178,1266@0.19.0)."""
    preference = run.rl in {"dpo", "kto", "orpo", "ipo"}
    return run.fsdp is not None and run.fsdp.version == 2 and (preference or run.fsdp.cpu_ram_efficient_loading)


def applies(run: Run) -> bool:
    """Whether the base is in half precision or 8 bits, and 4 bits are accepted too."""
    checkpoint = run.model is not None and run.model.quantized not in (None, "bitsandbytes")
    free = not run.unfrozen_parameters and not run.excludes_adapters and run.optimizer != "q_galore_adamw8bit"
    sharded = run.zero_stage < 3 or bears_zero_3(replace(run, adapter="qlora"))
    possible = free and not refused(run) and run.tensor_parallel_size == 1 and sharded
    return run.quantization in (None, "int8") and not checkpoint and possible


rule = Rule(
    id="qlora",
    stage="fit",
    title="Quantize the frozen base to 4 bits (QLoRA)",
    label=label,
    when=applies,
    edits=edits,
    why="""
        NF4 with double quantization stores the linear layers in 0.516 bytes a parameter instead of 2. Each weight is
        dequantized for the moment of its use. Embeddings, head and norms stay in half precision.
    """,
    cost=(
        "A small loss of quality, and time to dequantize every weight in each pass: a few percent with large micro "
        "batches, 40 % with small ones."
    ),
    because="The base is frozen; its linear layers take 0.516 bytes a parameter.",
    price="A small loss of quality; steps a few percent to 40 % slower.",
    caveat=rate_caveat,
    safe=False,
    source="https://arxiv.org/abs/2305.14314; axolotl/loaders/model.py:779-810@0.19.0",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 32
                lora_alpha: 16
                lora_target_linear: true
                sequence_len: 4096
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 32
                lora_alpha: 16
                lora_target_linear: true
                sequence_len: 4096
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="22.9 -> 13.2 GiB",
        ),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                rl: dpo
                learning_rate: 0.0000005
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                rl: dpo
                learning_rate: 0.000005
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                adapter: qlora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                load_in_4bit: true
            """,
        ),
        but(
            "lora_alpha: 64",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            fixed=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "gradient_checkpointing: true", "rl: orpo", fires=True),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: zero.json",
            deepspeed='{"zero_optimization": {"stage": 3}}',
            fires=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "tensor_parallel_size: 2"),
        only("base_model: meta-llama/Llama-3.1-8B", "unfrozen_parameters:\n  - model.layers.31"),
        only("base_model: meta-llama/Llama-3.1-8B", "optimizer: q_galore_adamw8bit"),
        only("base_model: nobody/knows-this", gpus="1x rtx-4090", fires=True),
        but("base_model: openai/gpt-oss-20b"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            "rl: dpo",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "rl: orpo",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            fires=True,
        ),
        but("optimizer: q_galore_adamw8bit", without=("rl", "fsdp_config"), gpus=""),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_version: 2",
            "fsdp_config:\n  cpu_ram_efficient_loading: true",
            without=("rl",),
            gpus="",
        ),
        but("qat:\n  weight_dtype: int8", without=("rl", "fsdp_config"), gpus=""),
        but(
            "gradient_checkpointing: true",
            "selective_checkpointing: mlp",
            "deepspeed: zero.json",
            without=("rl", "fsdp_config"),
            gpus="",
            deepspeed='{"zero_optimization": {"stage": 3}}',
        ),
    ),
)
