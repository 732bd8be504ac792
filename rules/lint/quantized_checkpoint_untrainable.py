"""A checkpoint that is quantized as released, and that the trainer refuses."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only
from advisor.memory.model import too_large_whole
from advisor.models import copy_in_bf16
from advisor.run.axolotl.released import CLASSES, is_sure, stays_packed

NAMES = {"mxfp4": "MXFP4", "fp8": "FP8"}
EFFICIENT = "fsdp_config.cpu_ram_efficient_loading"


def finds(run: Run) -> Iterator[Hit]:
    """Where MXFP4 or FP8 weights stay packed, and nothing lifts the trainer's guard."""
    if run.model is None:
        return
    method = run.model.quantized
    if method not in NAMES or not stays_packed(run.config, method, run.hardware) or is_lifted(run):
        return
    stored = f"`{run.base_model}` is stored in {NAMES[method]}"
    bits = next((key for key in ("load_in_4bit", "load_in_8bit") if run.is_on(key)), None)
    level = "error" if is_sure(run.model) and (method == "mxfp4" or run.hardware is not None) else "warning"
    copy = copy_in_bf16(run.base_model)
    instead = (Set("base_model", copy),) if copy else ()
    if bits is not None:
        message = f"{stored}, and cannot be loaded with `{bits}`: name a copy in bf16"
        yield Hit("base_model", message, instead, level=level)
        return
    if too_large_whole(run):
        message = (
            f"{stored}, which transformers does not train, and is larger in bf16 than one GPU: name a copy in bf16"
        )
        yield Hit("base_model", f"{message}, which can be sharded or quantized as it loads", instead, level=level)
        return
    edits = [
        Set("model_quantization_config", CLASSES[method]),
        Set("model_quantization_config_kwargs.dequantize", True),
    ]
    if method == "mxfp4" and run.config.at(EFFICIENT):  # refused next to it: utils/schemas/validation.py:1694-1704
        edits.append(Set(EFFICIENT, False))
    message = f"{stored}, which transformers does not train: have it turned to bf16 as it is loaded"
    yield Hit("base_model", message, tuple(edits), level=level)


def is_lifted(run: Run) -> bool:
    """Whether axolotl trains adapters on it: in preference training, and with its own kernels for experts."""
    return run.adapter is not None and (run.rl is not None or run.experts in {"scattermoe", "sonicmoe"})


rule = Rule(
    id="quantized-checkpoint-untrainable",
    stage="lint",
    title="A checkpoint that is quantized as released, and that the trainer refuses",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        transformers refuses to train MXFP4 and block-wise FP8 weights, adapters or not, and does so when the trainer is
        made, after the download. As they are loaded they can be turned to bf16, which takes four and two times the
        memory. On cards without such units (FP8: below compute capability 8.9) transformers does that by itself.
        Every GPU holds all weights as they are turned, and none can be quantized again: where that is too much, take a
        copy of the checkpoint in bf16, whoever published it.
        axolotl lifts the guard for adapters in preference training, and with its ScatterMoE and SonicMoE kernels.
    """,
    cost="The weights in bf16.",
    safe=lambda run: not (too_large_whole(run) or run.is_on("load_in_4bit") or run.is_on("load_in_8bit")),
    source=(
        "transformers/modeling_utils.py:3799-3813@5.16.1; "
        "transformers/trainer_utils.py:102-142@5.16.1; transformers/quantizers/quantizer_mxfp4.py:278-282@5.16.1; "
        "transformers/quantizers/quantizer_finegrained_fp8.py:211-212@5.16.1; axolotl/loaders/model.py:750-768@0.19.0; "
        "axolotl/core/builders/rl.py:299-327@0.19.0; axolotl/integrations/kernels/plugin.py:152-154@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: openai/gpt-oss-20b
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
            """,
            after="""
                base_model: openai/gpt-oss-20b
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
                model_quantization_config: Mxfp4Config
                model_quantization_config_kwargs:
                  dequantize: true
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: openai/gpt-oss-20b
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: true
            """,
            after="""
                base_model: openai/gpt-oss-20b
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: false
                model_quantization_config: Mxfp4Config
                model_quantization_config_kwargs:
                  dequantize: true
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: Qwen/Qwen3-8B-FP8
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: true
            """,
            after="""
                base_model: Qwen/Qwen3-8B-FP8
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: true
                model_quantization_config: FineGrainedFP8Config
                model_quantization_config_kwargs:
                  dequantize: true
            """,
        ),
        only(
            "base_model: openai/gpt-oss-20b",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj]",
            gpus="1x h100-80gb",
            fires=True,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: Qwen/Qwen3-8B-FP8
                load_in_4bit: false
                rl: dpo
            """,
            after="""
                base_model: Qwen/Qwen3-8B-FP8
                load_in_4bit: false
                rl: dpo
                model_quantization_config: FineGrainedFP8Config
                model_quantization_config_kwargs:
                  dequantize: true
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", gpus="1x h100-80gb"),
        only(
            "base_model: Qwen/Qwen3-8B-FP8", "adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            without=("load_in_4bit",),
            gpus="1x h100-80gb",
        ),
        but(
            "base_model: openai/gpt-oss-20b",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj]",
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "use_scattermoe: true",
            without=("load_in_4bit", "rl"),
        ),
        only("base_model: nobody/knows-this"),
        only(
            "base_model: openai/gpt-oss-20b",
            "model_quantization_config: Mxfp4Config",
            "model_quantization_config_kwargs:\n  dequantize: true",
        ),
        Example(
            gpus="8x rtx-4090",
            before="""
                base_model: Qwen/Qwen3-14B-FP8
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: Qwen/Qwen3-14B
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
        ),
        but("base_model: deepseek-ai/DeepSeek-R1", fires=True),
    ),
)
