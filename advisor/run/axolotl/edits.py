"""Edits of the run -> edits of the axolotl YAML, in the keys that axolotl 0.19.0 accepts together."""

from collections.abc import Callable, Mapping
from typing import Any

from advisor.documents import Change, Document, Remove, Set
from advisor.run.axolotl.read import LEGACY_ATTENTION, LORA_KERNELS, OFFLOADING_CHECKPOINTS
from advisor.run.axolotl.sharding import reshards, strategies_of, without_prefixes

FSDP_QLORA = {
    "cpu_ram_efficient_loading": True,
    "sync_module_states": True,
    "use_orig_params": False,
    "offload_params": False,
    "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "state_dict_type": "FULL_STATE_DICT",
}
Editor = Callable[[Document, Any], list[Change]]
LIGER_PLUGIN = "axolotl.integrations.liger.LigerPlugin"
CUT_PLUGIN = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"
FUSED_LOSSES = {"cut_cross_entropy": CUT_PLUGIN, "liger_fused_linear_cross_entropy": LIGER_PLUGIN}
"""Keys of the losses that make no logits, each with its plugin."""
WRITTEN_ATTENTION = {"flash": "flash_attention_2", "flex": "flex_attention"}
FSDP_2 = {
    "offload_params": False,
    "reshard_after_forward": True,
    "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "state_dict_type": "FULL_STATE_DICT",
}
OF_FSDP_1 = (
    *("sync_module_states", "use_orig_params", "limit_all_gathers", "backward_prefetch", "forward_prefetch"),
    *("sharding_strategy", "version"),
)
"""What FSDP2 warns of, drops or refuses (accelerate/utils/dataclasses.py:1811-1932@1.13.0), and the version itself."""


def plain(key: str, after: str | None = None) -> Editor:
    """Sets one key of the same meaning."""
    return lambda _config, value: [Set(key, value, after=after)]


def _set_accumulation(config: Document, value: object) -> list[Change]:
    """``batch_size`` and accumulation exclude each other (utils/schemas/validation.py:274@0.19.0)."""
    stale: list[Change] = [Remove("batch_size")] if "batch_size" in config else []
    return [*stale, Set("gradient_accumulation_steps", value, after="micro_batch_size")]


def _set_precision(config: Document, value: object) -> list[Change]:
    """One dtype, said once: the other keys would win or contradict."""
    on, off = ("bf16", "fp16") if value == "bf16" else ("fp16", "bf16")
    changes: list[Change] = [Set(on, True)]
    if config.get(off) not in (None, False) or off == "bf16":
        changes.append(Set(off, False, after=on))
    return changes + [Remove(key) for key in ("float32", "float16", "bfloat16") if key in config]


def _set_saved(config: Document, value: list[str]) -> list[Change]:
    """The modules that are trained whole; without any, what ties them goes too."""
    if value:
        return [Set("lora_modules_to_save", value, after="lora_alpha")]
    return [Remove(key) for key in ("lora_modules_to_save", "peft_ensure_weight_tying") if key in config]


def _set_attention(config: Document, value: str) -> list[Change]:
    """The canonical key; the legacy flags are rejected with it."""
    stale: list[Change] = [Remove(key) for key in LEGACY_ATTENTION if key in config]
    return [*stale, Set("attn_implementation", WRITTEN_ATTENTION.get(value, value))]


def _set_checkpointing(config: Document, value: bool) -> list[Change]:
    """On or off; switched off, its offloading goes too."""
    stale = ("gradient_checkpointing_kwargs", "activation_offloading") if not value else ()
    return [Set("gradient_checkpointing", value), *(Remove(key) for key in stale if key in config)]


def _set_reentrant(_config: Document, value: bool) -> list[Change]:
    """Said outright, since axolotl's default depends on the kind of training."""
    return [Set("gradient_checkpointing_kwargs.use_reentrant", value, after=None)]


def _set_offloading(config: Document, value: str | None) -> list[Change]:
    """``hidden_states`` asks for non-reentrant checkpoints (core/builders/base.py:592-599@0.19.0)."""
    if value is None:
        old = config.get("gradient_checkpointing") in OFFLOADING_CHECKPOINTS
        kept = [Set("gradient_checkpointing", True)] if old else []
        return [*kept, Remove("activation_offloading")]
    written = "hidden_states" if value == "hidden-states" else True
    changes: list[Change] = [Set("activation_offloading", written, after="gradient_checkpointing")]
    if value == "hidden-states":
        changes.append(Set("gradient_checkpointing_kwargs.use_reentrant", False))
    return changes


def _set_loss(config: Document, value: str) -> list[Change]:
    """A fused loss and the plugin that it lives in."""
    if config.get("rl"):
        return [Set("dpo_use_liger_kernel", True, after="rl")]
    match value:
        case "liger-fused":
            stale = [Remove(key) for key in ("liger_cross_entropy", "chunked_cross_entropy") if key in config]
            return [
                *stale,
                *_with_plugin(config, LIGER_PLUGIN),
                Set("liger_fused_linear_cross_entropy", True, after="plugins"),
            ]
        case "cut":
            others = ("liger_fused_linear_cross_entropy", "liger_cross_entropy", "chunked_cross_entropy")
            stale = [Remove(key) for key in others if key in config]
            off = [Set("cut_cross_entropy", True)] if "cut_cross_entropy" in config else []
            return [*stale, *_with_plugin(config, CUT_PLUGIN), *off]
        case _:
            return [Set("chunked_cross_entropy", True)]


def _with_plugin(config: Document, plugin: str) -> list[Change]:
    """The plugin, listed once."""
    given: Any = config.get("plugins") or []
    listed: list[Any] = [given] if isinstance(given, str) else list(given)
    if any(str(name).rsplit(".", 1)[-1] == plugin.rsplit(".", 1)[-1] for name in listed):
        return []
    return [Set("plugins", [*listed, plugin])]


def _set_targets(config: Document, value: Any) -> list[Change]:
    """All linear layers, or modules by name; only one of the two keys is meant."""
    if value == "linear":
        return [Set("lora_target_linear", True, after="lora_alpha")]
    stale: list[Change] = [Remove("lora_target_linear")] if "lora_target_linear" in config else []
    modules = value if isinstance(value, str) else list(value)
    return [*stale, Set("lora_target_modules", modules, after="lora_alpha")]


def _set_attention_kernels(_config: Document, value: bool) -> list[Change]:
    """The kernels for attention; whichever is named, axolotl no longer turns on the others by itself."""
    return [Set("lora_qkv_kernel", value, after="adapter"), Set("lora_o_kernel", value, after="lora_qkv_kernel")]


def _set_4bit(config: Document, value: bool) -> list[Change]:
    """4 bits; 8 bits would be rejected with it."""
    stale: list[Change] = [Set("load_in_8bit", False)] if config.get("load_in_8bit") else []
    return [*stale, Set("load_in_4bit", value, after="adapter")]


def _set_packed_experts(config: Document, value: bool) -> list[Change]:
    """Experts in as few bits as the rest of the base, next to the key that says how many."""
    return [Set("quantize_moe_experts", value, after="load_in_8bit" if config.get("load_in_8bit") else "load_in_4bit")]


def _set_fsdp_key(key: str) -> Editor:
    """A key of ``fsdp_config``, under whichever of its two spellings is there."""

    def change(config: Document, value: object) -> list[Change]:
        given: Mapping[str, Any] = config.get("fsdp_config") or {}
        prefixed = f"fsdp_{key}" in given or (
            key not in given and any(str(k).startswith("fsdp_") and k != "fsdp_version" for k in given)
        )
        return [Set(("fsdp_config", f"fsdp_{key}" if prefixed else key), value)]

    return change


def _set_fsdp2(config: Document, _value: object) -> list[Change]:
    """FSDP2 from nothing, or in place of FSDP1."""
    if config.get("fsdp_config"):
        return _second_version(config)
    stale: list[Change] = [Remove("deepspeed")] if "deepspeed" in config else []
    # Efficient loading is refused for quantized models: utils/schemas/validation.py:1266@0.19.0 and its neighbours.
    quantized = any(config.get(key) for key in ("load_in_4bit", "load_in_8bit", "model_quantization_config"))
    settings = FSDP_2 if quantized else {"cpu_ram_efficient_loading": True, **FSDP_2}
    return [*stale, Set("fsdp_version", 2), Set("fsdp_config", settings, after="fsdp_version")]


def _second_version(config: Document) -> list[Change]:
    """FSDP2 where FSDP1 is configured: its own keys go, and the old list, less what of it has a key of its own."""
    given: Mapping[str, Any] = config.get("fsdp_config") or {}
    settings, strategies = without_prefixes(given), strategies_of(config.get("fsdp"))
    own = (Remove(("fsdp_config", key)) for key in given if key.removeprefix("fsdp_") in OF_FSDP_1)
    made: list[Change] = [Set("fsdp_version", 2, after="fsdp_config"), Remove("fsdp"), *own]
    if "offload" in strategies:
        made += _set_fsdp_key("offload_params")(config, True)
    whole, written = reshards(settings, strategies), settings.get("reshard_after_forward")
    if isinstance(written, str) or (written is None and not whole):
        made += _set_fsdp_key("reshard_after_forward")(config, whole)
    return made


def _remove_deepspeed(config: Document, _value: object) -> list[Change]:
    """No DeepSpeed: plain data parallelism."""
    return [Remove("deepspeed")] if "deepspeed" in config else []


def _set_fsdp_qlora(config: Document, _value: object) -> list[Change]:
    """FSDP1 and a 4-bit base that one rank's host quantizes layer by layer.

    FSDP2 refuses that (validation.py:1266@0.19.0).
    """
    stale: list[Change] = [Remove("deepspeed")] if "deepspeed" in config else []
    return [
        *stale,
        Set("qlora_sharded_model_loading", True, after="load_in_4bit"),
        Set("fsdp_version", 1),
        Set("fsdp_config", FSDP_QLORA, after="fsdp_version"),
    ]


def _set_lora_kernels(_config: Document, value: frozenset[str]) -> list[Change]:
    """Which of axolotl's kernels adapters keep: those that none of these keys names are off once one is named."""
    return [Set(key, kernel in value, after="adapter") for kernel, key in LORA_KERNELS.items()]


def _set_tiles(config: Document, value: int) -> list[Change]:
    """Tiled MLPs; over Liger's, they must be told to keep its forward (integrations/liger/args.py:100-112@0.19.0)."""
    made: list[Change] = [Set("tiled_mlp", True, after="sequence_len")]
    made.append(Set("tiled_mlp_num_shards", value, after="tiled_mlp"))
    if config.get("liger_glu_activation"):
        made.append(Set("tiled_mlp_use_original_mlp", True, after="tiled_mlp_num_shards"))
    return made


def _set_liger(config: Document, value: tuple[str, ...]) -> list[Change]:
    """Liger's fused layers by name; the plugin must be listed."""
    keys = {"rms_norm": "liger_rms_norm", "glu": "liger_glu_activation", "rope": "liger_rope"}
    made = _with_plugin(config, LIGER_PLUGIN)
    return [
        *made,
        *(Set(keys[layer], True, after="plugins") for layer in value if not config.get(keys[layer])),
    ]


def _set_in_pieces(config: Document, value: object) -> list[Change]:
    """A 4-bit base quantized layer by layer on one process's host, under the FSDP1 that is there."""
    load = Set("qlora_sharded_model_loading", value, after="load_in_4bit")
    return [load, *_set_fsdp_key("cpu_ram_efficient_loading")(config, True)]


def _set_sync(config: Document, value: object) -> list[Change]:
    """Whether FSDP reduces gradients in each micro-step."""
    settings = {"gradient_accumulation_kwargs": {"sync_each_batch": value}}
    given: Mapping[str, Any] = config.get("accelerator_config") or {}
    if given:
        return [Set(("accelerator_config", "gradient_accumulation_kwargs", "sync_each_batch"), value)]
    return [Set("accelerator_config", settings, after="gradient_accumulation_steps")]


def _set_shards(config: Document, value: object) -> list[Change]:
    """Next to the size that it is multiplied with, else to FSDP's own keys."""
    partner = "context_parallel_size" if "context_parallel_size" in config else "fsdp_config"
    return [Set("dp_shard_size", value, after=partner)]


EDITS: dict[str, Editor] = {
    "micro_batch_size": plain("micro_batch_size"),
    "gradient_accumulation_steps": _set_accumulation,
    "sequence_len": plain("sequence_len"),
    "eval_batch_size": plain("eval_batch_size", "micro_batch_size"),
    "vllm_share": plain("vllm.gpu_memory_utilization"),
    "sample_packing": plain("sample_packing", "sequence_len"),
    "precision": _set_precision,
    "attention": _set_attention,
    "activation_checkpointing": _set_checkpointing,
    "reentrant": _set_reentrant,
    "activation_offloading": _set_offloading,
    "loss": _set_loss,
    "liger": _set_liger,
    "adapter": plain("adapter"),
    "lora_r": plain("lora_r", "adapter"),
    "lora_alpha": plain("lora_alpha", "lora_r"),
    "lora_targets": _set_targets,
    "lora_attention_kernels": _set_attention_kernels,
    "lora_kernels": _set_lora_kernels,
    "tiled_mlp_shards": _set_tiles,
    "lora_modules_to_save": _set_saved,
    "ensure_tying": plain("peft_ensure_weight_tying", "lora_modules_to_save"),
    "load_in_4bit": _set_4bit,
    "quantize_moe_experts": _set_packed_experts,
    "optimizer": plain("optimizer"),
    "learning_rate": plain("learning_rate", "optimizer"),
    "context_parallel_size": plain("context_parallel_size", "sequence_len"),
    "fsdp2": _set_fsdp2,
    "no_deepspeed": _remove_deepspeed,
    "fsdp_qlora": _set_fsdp_qlora,
    "loads_quantized_in_pieces": _set_in_pieces,
    "sync_each_batch": _set_sync,
    "dp_shard_size": _set_shards,
    "dp_replicate_size": plain("dp_replicate_size", "dp_shard_size"),
    "reshard_after_forward": _set_fsdp_key("reshard_after_forward"),
    "fsdp_offload_params": _set_fsdp_key("offload_params"),
    "fsdp_activation_checkpointing": _set_fsdp_key("activation_checkpointing"),
    "cpu_ram_efficient_loading": _set_fsdp_key("cpu_ram_efficient_loading"),
}


def changes(config: Document, edits: Mapping[str, object]) -> list[Change]:
    """All changes of ``edits`` to ``config``, each made on what the ones before it left."""
    made: list[Change] = []
    for name, value in edits.items():
        step = EDITS[name](config, value)
        config = config.changed(*step)
        made += step
    return made
