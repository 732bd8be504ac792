"""An axolotl YAML -> facts, with axolotl's own defaults and rewrites resolved (checked on axolotl 0.19.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.hardware import Hardware
from advisor.models import Architecture
from advisor.run import (
    Adapter,
    AttentionKernel,
    ExpertsKernel,
    FakeQuantization,
    Float8,
    Lora,
    Loss,
    Offloading,
    Quantization,
)
from advisor.run.axolotl.evaluation import evaluation
from advisor.run.axolotl.preference import MOST_ROWS, classifier, drops
from advisor.run.axolotl.reader import MOST, Reader, as_integer
from advisor.run.axolotl.released import stays_packed
from advisor.run.stack import Stack

if TYPE_CHECKING:
    from advisor.run.axolotl.facts import (
        AdapterFacts,
        AttentionFacts,
        BatchFacts,
        CheckpointingFacts,
        GenerationFacts,
        LossFacts,
        PrecisionFacts,
        QuantizationFacts,
    )

TRL_OFFLOADS = "0.12.0"
"""Before, ``gradient_checkpointing: offload`` moved layer inputs alone: axolotl pull request 2900, July 2025."""
OFFLOADING_CHECKPOINTS = ("offload", "offload_disk")
"""Values of ``gradient_checkpointing`` that offload as well."""
# axolotl/utils/schemas/enums.py:111-119@0.19.0, most specific first.
LORA_KERNELS = {"mlp": "lora_mlp_kernel", "qkv": "lora_qkv_kernel", "o": "lora_o_kernel"}
"""The keys of axolotl's fused LoRA kernels, by what each is for."""
LEGACY_ATTENTION: dict[str, AttentionKernel] = {
    "xformers_attention": "xformers",
    "sage_attention": "sage",
    "flex_attention": "flex",
    "flash_attention": "flash",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
ATTENTION_NAMES: dict[str, AttentionKernel] = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flex_attention": "flex",
    "xformers": "xformers",
    "sage": "sage",
}
LIGER_LAYERS = {
    "liger_rms_norm": "rms_norm",
    "liger_glu_activation": "glu",
    "liger_swiglu": "glu",
    "liger_rope": "rope",
    "liger_layer_norm": "layer_norm",
    "liger_rms_norm_gated": "rms_norm_gated",
}
LIGER_PARTS = frozenset({"rms_norm", "glu", "rope"})
"""What a family's row tells apart."""


def precision(reader: Reader, gpu_has_bf16: bool) -> PrecisionFacts:
    """The compute dtype: axolotl/utils/config/__init__.py:156-196@0.19.0."""
    bf16 = reader.take("bf16", "auto", "axolotl's default: auto")
    fp16 = reader.flag("fp16")
    automatic = bf16 == "auto"
    wants_bf16 = (gpu_has_bf16 and not fp16) if automatic else reader.flag("bf16")
    if automatic and not gpu_has_bf16 and not reader.has("fp16") and not reader.flag("float16"):
        fp16 = True
    if wants_bf16 or reader.flag("bfloat16"):
        return {"precision": "bf16", "autocast": True}
    half = fp16 or reader.flag("float16") or reader.flag("load_in_8bit")
    return {"precision": "fp16" if half else "fp32", "autocast": fp16}


def batch(reader: Reader) -> BatchFacts:
    """Batch sizes and lengths: axolotl/utils/config/__init__.py:200-209, utils/schemas/validation.py:230,248@0.19.0."""
    micro_batch_size = reader.integer("micro_batch_size", 1, least=1, most=MOST_ROWS)
    accumulation = reader.integer("gradient_accumulation_steps", 1, least=1, most=MOST_ROWS)
    if reader.has("batch_size") and not reader.has("gradient_accumulation_steps"):
        accumulation = max(1, reader.integer("batch_size", 1, least=1, most=MOST_ROWS) // micro_batch_size)
    sequence_len = reader.integer("sequence_len", 512, "axolotl's default: 512", least=1)
    rl = reader.text("rl") or None
    packing = reader.flag("sample_packing") and rl is None and classifier(reader) is None
    # Rows with images are padded to the longest alone: axolotl/core/builders/causal.py:535-536@0.19.0.
    has_images = reader.has("processor_type") and rl is None and classifier(reader) is None and not packing
    asks_to_pad = reader.flag("pad_to_sequence_len", default=packing or classifier(reader) == "sequence")
    padded = asks_to_pad and not has_images
    return {
        "micro_batch_size": micro_batch_size,
        "gradient_accumulation_steps": accumulation,
        "sync_each_batch": reader.flag("accelerator_config.gradient_accumulation_kwargs.sync_each_batch"),
        "sequence_len": sequence_len,
        "sample_packing": packing,
        "pads_to_sequence_len": padded,
        **evaluation(reader, micro_batch_size, sequence_len, packing=packing, padded=padded),
    }


def generation(reader: Reader, rl: str | None, rows: int) -> GenerationFacts:
    """What supervised training generates as it evaluates: tables and metrics a batch of ``rows``, samples one row.

    axolotl/core/builders/causal.py:98-146, utils/callbacks/__init__.py:447-470,568-600, utils/callbacks/
    generation.py, utils/config/__init__.py:219-220@0.19.0.
    """
    if rl is not None:
        return {"generated_rows": 0, "generated_tokens": 0, "gathers_to_generate": False}
    metrics = reader.flag("do_causal_lm_eval")
    loggers = ("use_wandb", "use_mlflow", "use_comet")
    table = reader.integer("eval_table_size", 0) > 0 and any(reader.flag(key) for key in loggers)
    samples = reader.flag("generate_samples")
    answered = reader.integer("eval_max_new_tokens", 128) if metrics or table else 0
    sampled = reader.integer("generation_max_new_tokens", 50) if samples else 0
    return {
        "generated_rows": rows if metrics or table else int(samples),
        "generated_tokens": max(answered, sampled),
        "gathers_to_generate": metrics,
    }


def lora(reader: Reader, stack: Stack, *, several_gpus: bool) -> AdapterFacts:
    """The adapter: axolotl/loaders/adapter.py, and its fused kernels (utils/schemas/config.py:1985-2063@0.19.0)."""
    adapter = reader.text("adapter") or None
    if adapter not in ("lora", "qlora"):
        return {"adapter": None, "lora": None}
    targets = reader.texts("lora_target_modules")
    return {
        "adapter": adapter,
        "lora": Lora(
            rank=reader.integer("lora_r", 8, "PEFT's default: 8", least=1),
            alpha=reader.number("lora_alpha", 8.0, "PEFT's default: 8"),
            dropout=reader.number("lora_dropout", 0.0) * drops(reader),
            targets=targets,
            targets_pattern=isinstance(reader.source.at("lora_target_modules"), str),
            target_linear=reader.flag("lora_target_linear"),
            target_parameters=reader.texts("lora_target_parameters"),
            modules_to_save=reader.texts("lora_modules_to_save"),
            ensure_tying=reader.flag("peft_ensure_weight_tying"),
            rank_pattern={
                k: n
                for k, v in reader.mapping("lora_rank_pattern").items()
                if (n := as_integer(v)) is not None and 0 <= n <= MOST
            },
            layers=reader.integers("peft_layers_to_transform"),
            layer_lists=reader.texts("peft_layers_pattern"),
            dora=reader.flag("peft_use_dora"),
            fp32=reader.flag("peft_autocast_adapter_dtype", default=True, why="PEFT's default"),
            kernels=_fused_lora_kernels(reader, stack, several_gpus=several_gpus),
        ),
    }


def _fused_lora_kernels(reader: Reader, stack: Stack, *, several_gpus: bool) -> frozenset[str]:
    """Which of its fused LoRA kernels axolotl patches in, given or by default."""
    if stack.trainer != "axolotl":
        return frozenset()
    if any(reader.has(key) for key in (*LORA_KERNELS.values(), "lora_embedding_kernel")):
        return frozenset(kernel for kernel, key in LORA_KERNELS.items() if reader.flag(key))
    if reader.text("adapter") == "lora" and reader.flag("load_in_8bit"):
        return frozenset()
    fsdp1 = reader.has("fsdp_config") and str(reader.source.at("fsdp_version")) != "2"
    refused = reader.flag("trust_remote_code") or reader.flag("nvfp4_merge_aware") or bool(reader.text("rl"))
    return frozenset() if refused or (fsdp1 and several_gpus) else frozenset(LORA_KERNELS)


def quantization(
    reader: Reader, model: Architecture | None, adapter: Adapter | None, hardware: Hardware | None
) -> QuantizationFacts:
    """How the base is stored: axolotl/loaders/model.py:719-800@0.19.0."""
    method: Quantization | None = None
    checkpoint = model.quantized if model else None
    if adapter and checkpoint in {"gptq", "awq"}:
        method = "gptq"
    elif (adapter and checkpoint == "bitsandbytes") or (adapter == "qlora" and reader.flag("load_in_4bit")):
        method = "nf4"
    elif adapter == "lora" and reader.flag("load_in_8bit"):
        method = "int8"
    elif checkpoint in ("mxfp4", "nvfp4", "fp8") and adapter and stays_packed(reader.source, checkpoint, hardware):
        method = checkpoint
    options = reader.mapping("bnb_config_kwargs")
    own = model is not None and model.family.linear_experts
    return {
        "quantization": method,
        "double_quantization": options.get("bnb_4bit_use_double_quant", True) is not False,
        "linear_experts": reader.flag("llama4_linearized_experts") or own,
        "quantize_moe_experts": reader.flag("quantize_moe_experts") and method in {"nf4", "int8"},
        "experts": _experts_kernel(reader),
    }


def float8(reader: Reader) -> Float8 | None:
    """The recipe of linear layers that multiply in fp8: axolotl/utils/schemas/fp8.py:7-31@0.19.0."""
    if not reader.flag("fp8"):
        return None
    match reader.text("fp8_config.recipe", "tensorwise"):
        case "rowwise" | "rowwise_with_gw_hp" as recipe:
            return recipe
        case _:
            return "tensorwise"


def fake_quantization(reader: Reader) -> FakeQuantization | None:
    """Types of weights and inputs: axolotl/utils/schemas/quantization.py, QATConfig@0.19.0."""
    if not reader.mapping("qat"):
        return None
    named = {"fp8": "float8_e4m3fn", "float8": "float8_e4m3fn"}
    weight, inputs = (
        reader.text(f"qat.{key}_dtype").removeprefix("torch.").lower() for key in ("weight", "activation")
    )
    group = reader.integer("qat.group_size", 32, "axolotl's default: 32", least=1)
    return FakeQuantization(
        named.get(weight, weight) or "int8",
        named.get(inputs, inputs),
        group,
        reader.flag("qat.quantize_embedding"),
    )


def _experts_kernel(reader: Reader) -> ExpertsKernel:
    """What computes stacked experts: axolotl/integrations/kernels/args.py, check_experts_implementation@0.19.0.

    transformers takes grouped products by itself; with its plugin axolotl asks for the loop, unless told otherwise.
    """
    asked = reader.text("experts_implementation")
    if "KernelsPlugin" not in plugins(reader):
        return "eager" if asked == "eager" else "grouped_mm"
    backend = reader.text("expert_backend").lower()
    kernels: tuple[ExpertsKernel, ...] = ("scattermoe", "sonicmoe")
    for kernel in kernels:
        wanted = reader.flag(f"use_{kernel}") or backend == kernel
        if wanted and (not asked or kernel in asked):
            return kernel
    return "grouped_mm" if asked in {"grouped_mm", "batched_mm", "deep_ep_grouped_mm"} else "eager"


def plugins(reader: Reader) -> set[str]:
    """The plugins that are listed, by the names of their classes."""
    return {name.rsplit(".", 1)[-1] for name in reader.texts("plugins")}


def checkpointing(reader: Reader, rl: str | None, model: Architecture | None, stack: Stack) -> CheckpointingFacts:
    """Activation checkpointing and offloading.

    axolotl/core/builders/base.py:589-618, utils/config/__init__.py:395-417, schemas/validation.py:1646-1653@0.19.0.
    """
    value = reader.take("gradient_checkpointing", False, "axolotl's default: false")
    legacy_offload = isinstance(value, str) and value in OFFLOADING_CHECKPOINTS
    without = model is not None and model.family.checkpoints == "without effect"
    on = (legacy_offload or reader.flag("gradient_checkpointing")) and not without
    offload = reader.take("activation_offloading", False, "axolotl's default: false")
    if legacy_offload and not offload:
        offload = True if stack.at_least("axolotl", TRL_OFFLOADS) else "hidden_states"
    kwargs = reader.mapping("gradient_checkpointing_kwargs")
    # For supervised runs without kwargs axolotl asks for reentrant checkpoints; else the builder's default is not to.
    others = reader.has("unfrozen_parameters") or reader.has("selective_checkpointing") or offload == "hidden_states"
    by_default = on and not kwargs and not others and rl is None
    undone = model is not None and model.family.checkpoints == "non-reentrant"
    return {
        "activation_checkpointing": on,
        "reentrant": kwargs.get("use_reentrant", by_default) is True and not undone,
        "activation_offloading": _offloading_mode(offload) if on else None,
        "tiled_mlp_shards": tiled_mlp_shards(reader),
    }


def _offloading_mode(value: object) -> Offloading | None:
    """``true``, ``legacy`` and ``disk`` go through TRL's saved-tensor hooks, ``legacy`` without streams.

    ``hidden_states`` moves layer inputs alone.
    """
    if value == "hidden_states":
        return "hidden-states"
    if value == "legacy":
        return "legacy"
    return "saved-tensors" if value else None


def tiled_mlp_shards(reader: Reader) -> int | None:
    """Pieces that ``tiled_mlp`` cuts a row into; None is off, 0 what axolotl makes of the row's length."""
    if not reader.flag("tiled_mlp"):
        return None
    return reader.integer("tiled_mlp_num_shards", 0, least=0)


def attention(reader: Reader, model: Architecture | None) -> AttentionFacts:
    """The attention kernel: canonical name, else a legacy flag, else transformers' default: sdpa where there is one."""
    name = reader.text("attn_implementation", "", "transformers' default: sdpa")
    base = name.split("@")[0].split(":")[0]
    kernel: AttentionKernel = ATTENTION_NAMES.get(base) or (
        "flash" if "flash" in base else "sage" if "sage" in base else "sdpa"
    )
    flags: list[AttentionKernel] = []
    if not name:
        # Any value that Python takes for true: utils/schemas/config.py:1552@0.19.0, before types are looked at.
        legacy = LEGACY_ATTENTION.items()
        flags = [flagged for key, flagged in legacy if reader.take(key, False, "axolotl's default")]
        default = "sdpa" if model is None or model.family.sdpa else "eager"
        kernel = flags[0] if flags else default
    given = bool(name or flags)
    varlen = reader.flag("sdpa_varlen", default=given)
    return {"attention": kernel, "attention_given": given, "sdpa_varlen": varlen}


def loss(reader: Reader, rl: str | None, model: Architecture | None) -> LossFacts:
    """How the loss is computed. A plugin's keys count only if the plugin is listed; else axolotl drops them."""
    listed = plugins(reader)
    liger = "LigerPlugin" in listed
    kind: Loss = "plain"
    if "CutCrossEntropyPlugin" in listed and reader.flag("cut_cross_entropy", default=True, why="the plugin's default"):
        kind = "cut"
    elif liger and reader.flag("liger_fused_linear_cross_entropy"):
        kind = "liger-fused"
    elif reader.flag("chunked_cross_entropy"):
        kind = "chunked"
    elif liger and reader.flag("liger_cross_entropy"):
        kind = "liger"
    if "DiffusionPlugin" in listed:
        kind = "diffusion"
    if rl is not None:
        # axolotl asks TRL for it in DPO and GRPO, and refuses it in IPO: core/builders/rl.py:197-199,
        # core/trainers/grpo/__init__.py:147-148, utils/schemas/validation.py:806-818@0.19.0.
        asked = {"dpo": "dpo_use_liger_kernel", "grpo": "trl.use_liger_loss", "gdpo": "trl.use_liger_loss"}.get(rl)
        kind = "liger-fused" if asked and reader.flag(asked) else "plain"
    if classifier(reader) is not None:
        kind = "plain"
    layers = frozenset(layer for key, layer in LIGER_LAYERS.items() if liger and reader.flag(key))
    return {"loss": kind, "liger": layers if model is None else applied(layers, model)}


def applied(layers: frozenset[str], model: Architecture) -> frozenset[str]:
    """What of a decoder's layers Liger patches: nothing where it has no function for the model type, and says so.

    axolotl/integrations/liger/plugin.py:187-242,488-506@0.19.0. Norms of other kinds go with all the others.
    """
    fused = model.family.liger
    return frozenset(layer for layer in layers if (layer in fused if layer in LIGER_PARTS else bool(fused)))
