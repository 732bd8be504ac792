"""A base that must fit on each GPU before it is sharded: in 4 bits, or as its released bits are turned to bf16."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, gib
from advisor.engine.registry import built_in_rules
from advisor.memory.model import too_large_whole
from advisor.memory.weight_groups import base_width
from advisor.memory.weights import weights_of
from advisor.models import copy_in_bf16
from advisor.run.axolotl.released import CLASSES

TURNING = ("model_quantization_config", "model_quantization_config_kwargs")


def finds(run: Run) -> Iterator[Hit]:
    """Where it is larger than the GPU, however many there are; first the experts must be in 4 bits as well."""
    yield from turned_to_bf16(run)
    if run.quantization != "nf4" or run.world_size == 1 or run.model is None or run.model.quantized:
        return
    if (run.fsdp is None and run.zero_stage < 3) or in_pieces(run) or half_quantized(run):
        return
    whole = weights_of(run, run.model).frozen_bytes
    usable = run.hardware.usable if run.hardware else whole
    if whole > usable:
        at, by = ("deepspeed", "ZeRO-3") if run.fsdp is None else ("fsdp_config", f"FSDP{run.fsdp.version}")
        room = f"{gib(whole)}, with {gib(usable)} usable"
        way = "`qlora_sharded_model_loading: true`, with FSDP1 and `cpu_ram_efficient_loading`, loads it in pieces"
        message = f"every GPU loads the whole 4-bit base before {by} shards it: {room}; {way}"
        yield Hit(at, message, on_key=at == "fsdp_config")


def turned_to_bf16(run: Run) -> Iterator[Hit]:
    """Where a checkpoint of MXFP4 or FP8 is turned as it is loaded."""
    if not (run.model and run.hardware and run.config.get(TURNING[0]) and too_large_whole(run)):
        return
    whole, usable, copy = base_width(run) * run.model.parameters, run.hardware.usable, copy_in_bf16(run.base_model)
    if run.model.quantized in CLASSES:
        turns = [Remove(key) for key in TURNING if run.config.get(key) is not None]
        message = (
            f"every GPU loads all weights in bf16 before they are sharded: {gib(whole)}, with {gib(usable)} usable"
        )
        edits = (Set("base_model", copy), *turns) if copy else ()
        yield Hit("model_quantization_config", f"{message}; a copy of the model in bf16 is sharded as it loads", edits)


def half_quantized(run: Run) -> bool:
    """Whether the experts stay in half precision, of which another rule speaks."""
    return bool(list(built_in_rules("lint")["moe-experts-not-quantized"].finds(run)))


def in_pieces(run: Run) -> bool:
    """Whether one process quantizes layer by layer on its host."""
    sharded = run.is_on("qlora_sharded_model_loading")
    return sharded and run.fsdp is not None and run.fsdp.cpu_ram_efficient_loading


rule = Rule(
    id="quantized-base-not-sharded",
    stage="lint",
    title="A base that must fit on each GPU before it is sharded",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        transformers builds a model under `zero.Init` only if it is not quantized, and axolotl puts the quantized model
        of an FSDP run on each process's own GPU. So all of it must fit on one GPU, however many there are; only then is
        it sharded. `qlora_sharded_model_loading` quantizes layer by layer on one process's host instead, with FSDP1 and
        `cpu_ram_efficient_loading`. MXFP4 and FP8 that are turned to bf16 as they load come through a quantizer, too:
        DeepSpeed then moves the whole model to every GPU, and a copy that is stored in bf16 is sharded as it loads.
    """,
    cost="Another checkpoint: the same weights as somebody else has published them.",
    safe=False,
    source=(
        "transformers/modeling_utils.py:3799-3813@5.16.1; deepspeed/runtime/engine.py:1468-1469@0.18.9; "
        "axolotl/loaders/model.py:706-712,985-1040@0.19.0; "
        "https://github.com/axolotl-ai-cloud/axolotl/issues/1717"
    ),
    examples=lambda: (
        Example(
            gpus="4n8x h100-80gb",
            before="""
                base_model: deepseek-ai/DeepSeek-V3
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_a_proj, q_b_proj, o_proj]
                sequence_len: 2048
                deepspeed: deepspeed_configs/zero3_bf16.json
                model_quantization_config: FineGrainedFP8Config
                model_quantization_config_kwargs:
                  dequantize: true
            """,
            after="""
                base_model: unsloth/DeepSeek-V3-bf16
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_a_proj, q_b_proj, o_proj]
                sequence_len: 2048
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
        ),
        but("base_model: deepseek-ai/DeepSeek-R1", fires=True),
        but("base_model: Qwen/Qwen3-8B-FP8"),
        but("base_model: unsloth/DeepSeek-V3-bf16"),
        but("base_model: nobody/knows-this"),
        but(without=("model_quantization_config", "model_quantization_config_kwargs")),
        but("base_model: deepseek-ai/DeepSeek-V3", gpus=""),
        Example(
            gpus="8x rtx-3090",
            before="""
                base_model: meta-llama/Llama-3.1-70B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            fires=True,
        ),
        but(
            "qlora_sharded_model_loading: true",
            "fsdp_version: 1",
            "fsdp_config:\n  cpu_ram_efficient_loading: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("deepspeed",),
        ),
        but("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 4096", without=("attn_implementation",)),
        but(without=("sequence_len", "gradient_checkpointing", "attn_implementation"), gpus="1x rtx-4090"),
        but("load_in_4bit: false", without=("sequence_len", "gradient_checkpointing", "attn_implementation")),
        but("base_model: nobody/knows-this", without=("sequence_len", "gradient_checkpointing", "attn_implementation")),
        but(
            "base_model: Qwen/Qwen3-30B-A3B", without=("sequence_len", "gradient_checkpointing", "attn_implementation")
        ),
        but(
            "base_model: openai/gpt-oss-20b", without=("sequence_len", "gradient_checkpointing", "attn_implementation")
        ),
        but(
            "deepspeed: deepspeed_configs/zero1.json",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation"),
        ),
        but(
            "qlora_sharded_model_loading: true",
            "deepspeed: zero.json",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation"),
            deepspeed='{"zero_optimization": {"stage": 3}}',
            fires=True,
        ),
        but(
            "qlora_sharded_model_loading: true",
            "lora_alpha: true",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            "deepspeed: deepspeed_configs/zero2.json",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation"),
            fires=True,
        ),
        but(
            "fsdp_config:\n  cpu_ram_efficient_loading: 1",
            without=("sequence_len", "gradient_checkpointing", "attn_implementation"),
            fires=True,
        ),
    ),
)
