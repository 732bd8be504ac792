"""Shard a quantized base with FSDP, which can load it in pieces."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.memory.weights import unreached_experts

# axolotl refuses these with FSDP1: utils/schemas/validation.py:931-1074@0.19.0.
WITHOUT_FSDP1 = frozenset(
    {"muon", "polora", "q_galore_adamw8bit", "flash_adamw", "flash_adam", "flash_sgd", "flash_sgdw", "flash_lion"}
)


def edits(run: Run) -> RunEdits:
    """FSDP1 in place of DeepSpeed or plain data parallelism; it wants non-reentrant checkpoints."""
    if run.fsdp is not None:
        return {"loads_quantized_in_pieces": True}
    return {"fsdp_qlora": True} | ({"reentrant": False} if run.activation_checkpointing else {})


def applies(run: Run) -> bool:
    """Whether a 4-bit base lies whole on each of several GPUs, and nothing in the config excludes FSDP1.

    Stacked experts have other names in the checkpoint, and axolotl's loader by pieces passes them by
    (axolotl/utils/model_shard_quant.py@0.19.0).
    """
    if run.model is not None and unreached_experts(run, run.model):
        return False
    if run.fsdp is not None and (run.fsdp.version == 2 or run.fsdp.loads_quantized_in_pieces):
        return False
    released = run.model is not None and run.model.quantized is not None
    several = run.world_size > 1 and not run.quantize_moe_experts and not released
    whole = run.quantization == "nf4" and several
    kernels = run.fsdp is None and any(
        run.config.get(key) for key in ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")
    )
    free = run.rl is None and run.tensor_parallel_size == 1 and not run.config.get("trust_remote_code")
    return whole and free and not kernels and run.optimizer not in WITHOUT_FSDP1


rule = Rule(
    id="fsdp-qlora",
    stage="fit",
    title="Shard the quantized base with FSDP",
    label=lambda before, _after: "4-bit base loaded in pieces" if before.fsdp else "4-bit base sharded (FSDP1)",
    when=applies,
    edits=edits,
    why="""
        DeepSpeed and plain data parallelism load the whole quantized model on every GPU. With
        qlora_sharded_model_loading one rank quantizes it layer by layer on its host, and FSDP keeps 1/N on each GPU.
        axolotl accepts this with FSDP version 1 alone.
    """,
    cost="""
        An all-gather of each layer's 4-bit weights in forward and backward. transformers drops FSDP1 with 5.20; axolotl
        has no other way to load a 4-bit base in pieces: its FSDP2 refuses `cpu_ram_efficient_loading` with 4 bits.
    """,
    because="Each GPU gets its share of the 4-bit base instead of the whole.",
    price="Layers are gathered twice a micro-step; transformers 5.20 drops FSDP1.",
    safe=True,
    source=(
        "axolotl docs/fsdp_qlora.qmd; axolotl/loaders/model.py:1008-1036, utils/schemas/validation.py:1145-1157, "
        "1245-1262@0.19.0; transformers/training_args.py:2815-2821@5.16.1; "
        "https://github.com/axolotl-ai-cloud/axolotl/issues/1717"
    ),
    examples=lambda: (
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 1024
                micro_batch_size: 1
                gradient_checkpointing: true
                optimizer: adamw_torch_fused
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                qlora_sharded_model_loading: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 1024
                micro_batch_size: 1
                gradient_checkpointing: true
                optimizer: adamw_torch_fused
                attn_implementation: flash_attention_2
                fsdp_version: 1
                fsdp_config:
                  cpu_ram_efficient_loading: true
                  sync_module_states: true
                  use_orig_params: false
                  offload_params: false
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  state_dict_type: FULL_STATE_DICT
                gradient_checkpointing_kwargs:
                  use_reentrant: false
            """,
            memory="42.7 -> 26.3 GiB",
        ),
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 512
                micro_batch_size: 1
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                attn_implementation: flash_attention_2
                fsdp_version: 1
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  offload_params: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                qlora_sharded_model_loading: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 512
                micro_batch_size: 1
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                attn_implementation: flash_attention_2
                fsdp_version: 1
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  offload_params: true
                  cpu_ram_efficient_loading: true
            """,
            memory="36.8 -> 5.6 GiB",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-70B",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            gpus="1x rtx-4090",
        ),
        only("base_model: meta-llama/Llama-3.1-70B", gpus="2x rtx-4090"),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "sequence_len: 16384",
            without=("load_in_4bit", "fsdp_version", "fsdp_config"),
        ),
        only("base_model: x", "deepspeed: deepspeed_configs/zero3.json"),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                lora_mlp_kernel: true
            """,
            fires=True,
        ),
        but(
            "base_model: openai-community/gpt2",
            "optimizer: q_galore_adamw8bit",
            without=("fsdp_config", "lora_mlp_kernel"),
            gpus="2x rtx-4090",
        ),
        but(without=("fsdp_config",), gpus="2x rtx-4090"),
        but("base_model: openai/gpt-oss-20b", without=("fsdp_config", "lora_mlp_kernel"), gpus="2x rtx-4090"),
        but("rl: dpo", without=("fsdp_config", "lora_mlp_kernel"), gpus="2x rtx-4090"),
        but("tensor_parallel_size: 2", without=("fsdp_config", "lora_mlp_kernel"), gpus="2x rtx-4090"),
        but("quantize_moe_experts: true", gpus="2x rtx-4090"),
        but("trust_remote_code: true", without=("fsdp_config", "lora_mlp_kernel"), gpus="2x rtx-4090"),
        but("base_model: nobody/knows-this", without=("fsdp_config",), gpus="8x a100-80gb"),
        but(
            "base_model: nobody/knows-this",
            "optimizer: muon",
            without=("fsdp_config", "lora_mlp_kernel"),
            gpus="8x a100-80gb",
        ),
        but(
            "base_model: nobody/knows-this",
            "tensor_parallel_size: 2",
            without=("fsdp_config", "lora_mlp_kernel"),
            gpus="8x a100-80gb",
        ),
    ),
)
