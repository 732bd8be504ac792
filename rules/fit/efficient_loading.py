"""Load the weights once a node, and cut them there."""

from advisor import Example, Rule, Run, only
from advisor.memory.host_loading import FILLS


def applies(run: Run) -> bool:
    """Whether FSDP2 gets the whole model on every GPU; axolotl refuses the remedy for quantized ones."""
    fsdp = run.fsdp
    whole = fsdp is not None and fsdp.version == 2 and run.world_size > 1 and not fsdp.cpu_ram_efficient_loading
    return whole and run.quantization is None and not run.config.get("model_quantization_config")


def price(_before: Run, after: Run) -> str:
    """What it takes of the host, where all weights are trained."""
    if after.adapter is not None or not after.stack.at_least("transformers", FILLS):
        return "None."
    return "While they load, the other processes hold zeros as large as the model."


rule = Rule(
    id="efficient-loading",
    stage="fit",
    title="Let one process load the weights, and give each GPU its shard",
    label="weights loaded by one process",
    when=applies,
    edits=lambda run: {"cpu_ram_efficient_loading": True},
    why="""
        Without `cpu_ram_efficient_loading` axolotl moves the whole model to every GPU before FSDP2 cuts it, so that
        all of it must fit on one GPU, however many there are.
    """,
    cost=(
        "None with an adapter. Where all weights are trained, transformers 5.6 and later fill a model of zeros on the"
        " host in each other process, until FSDP2 has cut it."
    ),
    because="No GPU holds the whole model while it is loaded.",
    price=price,
    safe=True,
    source=(
        "axolotl/loaders/model.py:582-590,990-1004, monkeypatch/accelerate/fsdp2.py:524-670@0.19.0; "
        "transformers/modeling_utils.py:4790-4796@5.16.1"
    ),
    examples=lambda: (
        Example(
            gpus="8x rtx-4090",
            before="""
                base_model: Qwen/Qwen2.5-14B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: Qwen/Qwen2.5-14B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                gradient_checkpointing_kwargs:
                  use_reentrant: false
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  cpu_ram_efficient_loading: true
            """,
            memory="31.3 -> 11.6 GiB",
        ),
        only(
            "base_model: Qwen/Qwen2.5-14B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  cpu_ram_efficient_loading: true",
            gpus="8x rtx-4090",
        ),
        Example(
            gpus="8x rtx-4090",
            before="""
                base_model: Qwen/Qwen2.5-14B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                load_in_8bit: true
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-14B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-14B",
            "fsdp_version: 2",
            "fsdp_config:\n  cpu_ram_efficient_loading: true",
            gpus="8x a100-80gb",
        ),
        only("base_model: Qwen/Qwen2.5-14B", "deepspeed: zero.json", deepspeed="{}"),
        only(
            "base_model: Qwen/Qwen2.5-14B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="8x rtx-4090",
        ),
        only(
            "base_model: Qwen/Qwen2.5-14B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            "model_quantization_config: FineGrainedFP8Config",
            gpus="8x rtx-4090",
        ),
    ),
)
