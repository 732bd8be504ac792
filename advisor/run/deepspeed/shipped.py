"""The DeepSpeed configs that axolotl ships, known by name, for when the file is not there.

Facts of axolotl's ``deepspeed_configs`` folder (checked on 0.19.0): what each file sets, in a compact form of our own.
"""

from collections.abc import Mapping
from pathlib import PurePath

AUTO = "auto"
_COMMON = {
    "gradient_accumulation_steps": AUTO,
    "gradient_clipping": AUTO,
    "train_batch_size": AUTO,
    "train_micro_batch_size_per_gpu": AUTO,
    "wall_clock_breakdown": False,
}
_AUTO_DTYPES = {
    "bf16": {"enabled": AUTO},
    "fp16": {
        "enabled": AUTO,
        "auto_cast": False,
        "loss_scale": 0,
        "initial_scale_power": 32,
        "loss_scale_window": 1000,
        "hysteresis": 2,
        "min_loss_scale": 1,
    },
}
_COMPILE = {"compile": {"disable": False, "backend": "inductor"}}
_STAGE_1 = {"stage": 1, "overlap_comm": True}
_STAGE_2 = {
    "stage": 2,
    "offload_optimizer": {"device": "cpu"},
    "contiguous_gradients": True,
    "overlap_comm": True,
}
_STAGE_3 = {
    "stage": 3,
    "overlap_comm": True,
    "contiguous_gradients": True,
    "sub_group_size": 0,
    "reduce_bucket_size": AUTO,
    "stage3_prefetch_bucket_size": AUTO,
    "stage3_param_persistence_threshold": AUTO,
    "max_live_parameters": 0,
    "max_reuse_distance": 0,
    "gather_16bit_weights_on_model_save": True,
}
_CPU = {"device": "cpu", "pin_memory": True}
_TORCH_ON_CPU = {"zero_force_ds_cpu_optimizer": False, "zero_allow_untested_optimizer": True}

SHIPPED: dict[str, dict[str, object]] = {
    "zero1.json": {"zero_optimization": _STAGE_1, **_AUTO_DTYPES, **_COMMON},
    "zero1_torch_compile.json": {"zero_optimization": _STAGE_1, **_AUTO_DTYPES, **_COMPILE, **_COMMON},
    "zero2.json": {"zero_optimization": _STAGE_2, **_AUTO_DTYPES, **_COMMON},
    "zero2_torch_compile.json": {"zero_optimization": _STAGE_2, **_AUTO_DTYPES, **_COMPILE, **_COMMON},
    "zero3.json": {"zero_optimization": _STAGE_3, **_AUTO_DTYPES, **_COMMON},
    "zero3_bf16.json": {"zero_optimization": _STAGE_3, "bf16": {"enabled": True}, **_COMMON},
    "zero3_bf16_cpuoffload_params.json": {
        **_TORCH_ON_CPU,
        "zero_optimization": {**_STAGE_3, "offload_param": _CPU},
        "bf16": {"enabled": True},
        **_COMMON,
    },
    "zero3_bf16_cpuoffload_all.json": {
        **_TORCH_ON_CPU,
        "zero_optimization": {**_STAGE_3, "offload_optimizer": _CPU, "offload_param": _CPU},
        "bf16": {"enabled": True},
        **_COMMON,
    },
}


def shipped(path: str) -> dict[str, object] | None:
    """What axolotl's file of this name sets, or None if it ships no such file."""
    name = PurePath(path)
    in_folder = name.parent.name in {"deepspeed_configs", ""}
    return SHIPPED.get(name.name) if in_folder else None


def has_shipped_name(path: str) -> bool:
    """Whether the file is one of axolotl's own by its name, and so not ours to edit."""
    return PurePath(path).name in SHIPPED


def is_shipped(path: str, values: Mapping[str, object]) -> bool:
    """Whether the file is one of axolotl's own: also by what it leaves to the trainer, as all of theirs ever did."""
    return has_shipped_name(path) and all(values.get(key, left) == left for key, left in _COMMON.items())
