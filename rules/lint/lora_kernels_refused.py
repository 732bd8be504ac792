"""axolotl's fused LoRA kernels that do not work with another setting."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only

KERNELS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")
# Looked at with FSDP1 alone.
ALL = (*KERNELS, "lora_embedding_kernel")


def finds(run: Run) -> Iterator[Hit]:
    """The first of the three reasons; the edits take away what any of them is about."""
    named = [key for key in ALL if run.config.get(key)]
    kernels = [key for key in KERNELS if key in named]
    off: tuple[Change, ...] = tuple(Remove(key) for key in named)
    if named and refused_under_fsdp(run):
        if run.fsdp is not None and run.fsdp.version == 2:
            why = "axolotl looks for `fsdp_version: 2` at the top level; set it there"
            yield Hit(named[0], f"`{named[0]}` is refused on several GPUs: {why}", (Set("fsdp_version", 2),))
        else:
            yield Hit(named[0], message(run, named, "FSDP1 on several GPUs", "; or set `fsdp_version: 2`"), off)
    elif kernels and run.config.get("adapter") == "lora" and run.config.get("load_in_8bit"):
        yield Hit(kernels[0], message(run, kernels, "a base in 8 bits"), off)
    elif kernels and run.config.get("trust_remote_code"):
        other = "; or `trust_remote_code`, if transformers has the model"
        yield Hit(kernels[0], message(run, kernels, "`trust_remote_code`", other), off)


def refused_under_fsdp(run: Run) -> bool:
    """axolotl looks here before it copies the version out of ``fsdp_config``."""
    sharded = run.config.get("fsdp_config") is not None
    return sharded and run.world_size > 1 and str(run.config.get("fsdp_version")) != "2"


def message(run: Run, keys: list[str], other_setting: str, other: str = "") -> str:
    """What stops the run; nothing but speed is lost without the kernels."""
    value = str(run.config.get(keys[0])).lower()
    return f"`{keys[0]}: {value}` is refused by axolotl with {other_setting}; remove the LoRA kernels{other}"


rule = Rule(
    id="lora-kernels-refused",
    stage="lint",
    title="Fused LoRA kernels that do not work with another setting",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        The kernels take PEFT's forward apart and put it together again in Triton, for modules that axolotl knows: not
        for weights in 8 bits, nor for code that comes with a checkpoint, nor for the flat shards of FSDP1. axolotl
        turns the kernels on by itself wherever they work, so there is no need to name them. Dropout, DoRA and 4 bits
        are not refused.
    """,
    cost="The speed and the memory that the kernels would have saved.",
    safe=True,
    source="axolotl/utils/schemas/validation.py:664-698@0.19.0; axolotl/utils/schemas/config.py:1929-1947@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                load_in_8bit: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_mlp_kernel: true
                lora_qkv_kernel: true
                lora_o_kernel: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                load_in_8bit: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                trust_remote_code: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_qkv_kernel: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                trust_remote_code: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_embedding_kernel: true
                fsdp_version: 1
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 1
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
        ),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_mlp_kernel: true
                fsdp_config:
                  fsdp_version: 2
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_mlp_kernel: true
                fsdp_config:
                  fsdp_version: 2
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
                fsdp_version: 2
            """,
        ),
        but(
            "load_in_8bit: true",
            "lora_mlp_kernel: false",
            "lora_embedding_kernel: true",
            without=("fsdp_config",),
            gpus="1x a100-80gb",
        ),
        but(
            "load_in_4bit: true",
            "adapter: qlora",
            "lora_dropout: 0.05",
            "peft_use_dora: true",
            without=("fsdp_config",),
            gpus="1x a100-80gb",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "lora_embedding_kernel: true", gpus="8x a100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B", "trust_remote_code: true"),
        but("fsdp_config: {}", gpus="1x a100-80gb"),
        but("fsdp_config: {}", fixed=True),
        but(
            "fsdp_version: 1", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("lora_mlp_kernel",)
        ),
        but(
            "adapter: qlora", "load_in_4bit: true", "load_in_8bit: true", without=("fsdp_config",), gpus="1x a100-80gb"
        ),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_mlp_kernel: true
                fsdp_config: {}
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_config: {}
            """,
        ),
    ),
)
