"""Edits of the run -> edits of a DeepSpeed config, and the configs that the advisor writes again."""

from collections.abc import Callable, Mapping
from typing import Any

from advisor.documents import Change, Remove, Set
from advisor.models import Architecture

Editor = Callable[[Mapping[str, Any], Any, str], list[Change]]
ZERO = "zero_optimization."
SIZED_BUCKET = 50_000_000
"""Elements: 0.19 GiB for the two bf16 buffers, large enough to keep the links busy."""
SIZED_LIVE = 100_000_000
MOST_LIVE = 2_000_000_000
"""Twice DeepSpeed's own default: layers of a billion elements and more are gathered in parts."""
LIVE = ZERO + "stage3_max_live_parameters"
BATCH_FIELDS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
)
STAGE_3_KEYS = {
    "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto",
    "stage3_max_live_parameters": SIZED_LIVE,
    "stage3_max_reuse_distance": SIZED_LIVE,
    "sub_group_size": SIZED_LIVE,
    "stage3_gather_16bit_weights_on_model_save": True,
}
SYNONYMS = {
    "stage3_prefetch_bucket_size": "prefetch_bucket_size",
    "stage3_param_persistence_threshold": "param_persistence_threshold",
    "stage3_max_live_parameters": "max_live_parameters",
    "stage3_max_reuse_distance": "max_reuse_distance",
    "stage3_gather_16bit_weights_on_model_save": "gather_16bit_weights_on_model_save",
}


def live_for(model: Architecture | None) -> int:
    """Elements that may be live so that the next layer is gathered while one computes: two of the largest dense ones.

    DeepSpeed prefetches what the limit leaves next to what is gathered already
    (runtime/zero/partitioned_param_coordinator.py:429-431@0.18.9). A layer's stacked experts are gathered whole: two
    such layers would take what sharding has freed.
    """
    dense = (block for block in model.blocks if block.mlp is None or not block.mlp.experts) if model else ()
    layer = max((block.parameters for block in dense), default=0)
    return min(max(SIZED_LIVE, -(-2 * layer // SIZED_BUCKET) * SIZED_BUCKET), MOST_LIVE)


def fresh_config(stage: int, precision: str, live: int = SIZED_LIVE) -> dict[str, Any]:
    """A config that says what it means: exact stage and dtype, batch fields left to the trainer, buckets sized.

    ``bf16`` is written out, since "auto" would build ZeRO-3's shards in fp32.
    """
    zero: dict[str, Any] = {"stage": stage, "contiguous_gradients": True, "overlap_comm": True}
    if stage == 3:
        zero |= {**STAGE_3_KEYS, "stage3_max_live_parameters": live}
    elif stage:
        zero |= {"reduce_bucket_size": SIZED_BUCKET}
    dtype = {precision: {"enabled": True}} if precision in {"bf16", "fp16"} else {}
    return {"zero_optimization": zero, **dtype, **dict.fromkeys(BATCH_FIELDS, "auto")}


def _set_stage(values: Mapping[str, Any], stage: object, precision: str) -> list[Change]:
    """Another ZeRO stage, with what that stage needs said outright."""
    zero: Mapping[str, Any] = values.get("zero_optimization") or {}
    changes: list[Change] = [Set(ZERO + "stage", stage)]
    if stage != 3:
        stale = ("offload_param", *(key for key in zero if str(key).startswith("stage3_")))
        return changes + [Remove(ZERO + key) for key in stale if key in zero]
    missing = {key: value for key, value in STAGE_3_KEYS.items() if key not in zero and SYNONYMS.get(key) not in zero}
    changes += [Set(ZERO + key, value) for key, value in missing.items()]
    return changes + _exact_dtype(values, precision)


def _exact_dtype(values: Mapping[str, Any], precision: str) -> list[Change]:
    """The dtype as a literal true, which "auto" is not when ZeRO-3 builds its shards."""
    if precision not in {"bf16", "fp16"} or dict(values.get(precision) or {}).get("enabled") is True:
        return []
    other = "fp16" if precision == "bf16" else "bf16"
    return [Set(f"{precision}.enabled", True), *([Remove(other)] if other in values else [])]


def _set_half_masters(values: Mapping[str, Any], _on: object, precision: str) -> list[Change]:
    """Masters, gradients and states in bf16; DeepSpeed takes them together: runtime/config.py:986-990@0.18.9."""
    keys = ("bf16_master_weights_and_grads", "bf16_optimizer_states")
    return [*_exact_dtype(values, precision), *(Set(f"bf16.{key}", True) for key in keys)]


def _set_offload(key: str) -> Editor:
    """To the host, pinned; or back to the GPU."""

    def change(_values: Mapping[str, Any], device: object, _precision: str) -> list[Change]:
        if device == "gpu":
            return [Remove(ZERO + key)]
        return [Set(ZERO + key, {"device": device, "pin_memory": True})]

    return change


def _set_zero(key: str) -> Editor:
    """A plain key of ``zero_optimization``, under whichever of its names is there."""

    def change(values: Mapping[str, Any], value: object, _precision: str) -> list[Change]:
        zero: Mapping[str, Any] = values.get("zero_optimization") or {}
        other = SYNONYMS.get(key, key)
        return [Set(ZERO + (other if other in zero else key), value)]

    return change


EDITS: dict[str, Editor] = {
    "zero_stage": _set_stage,
    "half_masters": _set_half_masters,
    "offload_optimizer": _set_offload("offload_optimizer"),
    "offload_params": _set_offload("offload_param"),
    "reduce_bucket_size": _set_zero("reduce_bucket_size"),
    "max_live_parameters": _set_zero("stage3_max_live_parameters"),
    "max_reuse_distance": _set_zero("stage3_max_reuse_distance"),
    "sub_group_size": _set_zero("sub_group_size"),
    "secondary_partition_size": _set_zero("zero_hpz_partition_size"),
}


def changes(
    values: Mapping[str, Any], edits: Mapping[str, object], precision: str, live: int = SIZED_LIVE
) -> list[Change]:
    """All changes of ``edits`` to a config that holds ``values``, for a run that computes in ``precision``.

    ``live``: the live parameters that ZeRO-3 gets where the config does not limit them.
    """
    made = [change for name, value in edits.items() for change in EDITS[name](values, value, precision)]
    if "zero_stage" not in edits or "max_live_parameters" in edits:
        return made
    return [Set(LIVE, live) if isinstance(change, Set) and change.path == LIVE else change for change in made]
