"""A sharded half-precision base on the host instead of a 4-bit one on every GPU."""

from advisor import Example, Rule, Run, RunEdits, only


def edits(run: Run) -> RunEdits:
    """LoRA on a base that each layer fetches from the host, under whichever sharding there is."""
    plain = {"adapter": "lora", "load_in_4bit": False} | (
        {"quantize_moe_experts": False} if run.quantize_moe_experts else {}
    )
    if run.fsdp is not None:
        eight_bit = {"optimizer": "adamw_torch"} if "8bit" in run.optimizer else {}
        return plain | {"fsdp_offload_params": True, "cpu_ram_efficient_loading": True} | eight_bit
    return (
        plain
        | {"zero_stage": 3, "offload_params": "cpu"}
        | ({"reentrant": True} if run.activation_checkpointing else {})
    )


def applies(run: Run) -> bool:
    """Whether a base quantized while loading is what does not fit, on a stack that can shard and offload instead."""
    by_bitsandbytes = run.quantization == "nf4" and run.model is not None and run.model.quantized is None
    free = run.rl is None and not run.unfrozen_parameters
    return by_bitsandbytes and free and (run.fsdp is not None or run.takes_deepspeed)


rule = Rule(
    id="half-precision-offload",
    stage="fit",
    title="Keep the base in half precision on the host, sharded, instead of in 4 bits on every GPU",
    label="half-precision base on the host",
    when=applies,
    edits=edits,
    why="""
        A quantized base is loaded whole on every GPU unless FSDP shards it, and stacked experts stay in half
        precision unless they are quantized too. In half precision ZeRO-3 or FSDP can shard the base and keep it on the
        host: the GPU holds the layers at work alone.
    """,
    cost=(
        "Every layer crosses PCIe twice in each micro-step, for the forward and the backward: slow. 2 bytes a "
        "parameter of host memory."
    ),
    because="The base lies on the host; a GPU holds only the layers at work.",
    price="Slow: each layer crosses PCIe twice in every micro-step.",
    safe=False,
    source="https://arxiv.org/abs/2104.07857; https://github.com/axolotl-ai-cloud/axolotl/issues/1717",
    examples=lambda: (
        Example(
            gpus="1x rtx-3090 host=256GiB",
            before="""
                base_model: mistralai/Mixtral-8x7B-v0.1
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - v_proj
                sequence_len: 1024
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: mistralai/Mixtral-8x7B-v0.1
                adapter: lora
                load_in_4bit: false
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - v_proj
                sequence_len: 1024
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                gradient_checkpointing_kwargs:
                  use_reentrant: true
                deepspeed: config.half-precision-offload.json
            """,
            memory="170.3 -> 3.8 GiB",
        ),
        only(
            "base_model: mistralai/Mixtral-8x7B-v0.1",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules:\n  - q_proj\n  - v_proj",
            gpus="1x rtx-3090",
        ),
        only(
            "base_model: mistralai/Mixtral-8x7B-v0.1",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "optimizer: muon",
        ),
        only("base_model: nobody/knows-this", "adapter: qlora", "load_in_4bit: true", "lora_r: 16", "lora_alpha: 32"),
        only("base_model: openai/gpt-oss-20b", "adapter: qlora", "load_in_4bit: true", "lora_r: 16", "lora_alpha: 32"),
        only(
            "base_model: mistralai/Mixtral-8x7B-v0.1",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "rl: dpo",
            gpus="1x a100-80gb host=2TiB",
        ),
        only(
            "base_model: mistralai/Mixtral-8x7B-v0.1",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "unfrozen_parameters:\n  - model.layers.31",
            gpus="1x a100-80gb host=2TiB",
        ),
        Example(
            gpus="",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                optimizer: muon
            """,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            gpus="",
        ),
    ),
)
