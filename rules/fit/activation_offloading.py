"""Keep layer inputs on the host."""

from advisor import Example, Rule, Run, but, only


def applies(run: Run) -> bool:
    """Whether layers are checkpointed and their inputs still lie on the GPU, or all that a layer saves comes back."""
    checkpointed = run.activation_checkpointing and (run.activation_offloading is None or run.reentrant)
    return checkpointed and run.rl != "ebft"


def label(before: Run, _after: Run) -> str:
    """What goes to the host, or what alone still does."""
    return "only hidden states on the host" if before.activation_offloading else "layer inputs on the host"


rule = Rule(
    id="activation-offloading",
    stage="fit",
    title="Move checkpointed layer inputs to the host",
    label=label,
    when=applies,
    edits=lambda _run: {"activation_offloading": "hidden-states"},
    why="""
        What checkpointing keeps grows with tokens x layers: 20 GiB for 16k tokens of a 70B model. The copies travel
        while other layers compute. Only the hidden states go, with non-reentrant checkpoints: under `true` a
        reentrant checkpoint of an adapter run sends and brings back all that a recomputed layer saves, and holds it
        until the next layer is through.
    """,
    cost=(
        "Pinned host memory of the same size, and traffic over PCIe that is hidden only if a layer computes long "
        "enough."
    ),
    because="Checkpointed layer inputs lie on the host until backward.",
    price="Pinned host memory of the same size, and traffic over PCIe.",
    safe=True,
    source="axolotl/loaders/model.py:342-385, core/builders/base.py:589-618@0.19.0",
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
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 32768
                micro_batch_size: 1
                gradient_checkpointing: true
                activation_offloading: hidden_states
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
            """,
            memory="19.7 -> 11.8 GiB",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 32768", gpus="1x rtx-4090"),
        but(
            "deepspeed: deepspeed_configs/zero3.json",
            without=("micro_batch_size", "attn_implementation"),
            gpus="1x a100-80gb",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B", "gradient_checkpointing: offload"),
        only("base_model: meta-llama/Llama-3.1-8B", "gradient_checkpointing: true", "rl: ebft", gpus=""),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 8192
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                activation_offloading: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 8192
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                activation_offloading: hidden_states
                gradient_checkpointing_kwargs:
                  use_reentrant: false
            """,
            memory="18.9 -> 17.9 GiB",
        ),
        but("activation_offloading: true", without=("plugins", "liger_fused_linear_cross_entropy"), fixed=True),
        but(
            "gradient_checkpointing_kwargs:\n  use_reentrant: true",
            without=("plugins", "liger_fused_linear_cross_entropy"),
            fixed=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 8192",
            "gradient_checkpointing: true",
            "activation_offloading: true",
            gpus="1x rtx-4090",
        ),
    ),
)
