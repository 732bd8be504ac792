"""A DeepSpeed JSON -> its ZeRO, with ``"auto"`` resolved as transformers and accelerate do.

Defaults: deepspeed/runtime/zero/config.py@0.18.9; ``"auto"``: transformers/integrations/deepspeed.py:133-238@5.16.1.
Any other ``"auto"`` inside ``zero_optimization`` is dropped and becomes DeepSpeed's default
(runtime/config_utils.py:54-57@0.18.9).
"""

from collections.abc import Callable

from advisor.run import Device, Precision, Zero, ZeroStage
from advisor.run.axolotl.reader import Reader
from advisor.run.deepspeed.section import Section

DEFAULT_BUCKET = 500_000_000
DEFAULT_PREFETCH = 50_000_000
DEFAULT_PERSISTENCE = 100_000
DEFAULT_PARAM_BUFFER = 100_000_000
DEFAULT_BILLION = 1_000_000_000
ZERO = "zero_optimization."
SECTIONS = ("zero_optimization", "bf16", "fp16")
"""accelerate asks each for keys, and stops where it is anything else (accelerate/utils/deepspeed.py:181-201@1.13.0)."""


def zero(reader: Reader, hidden_size: int | None, filled: Precision | None = None) -> Zero:
    """ZeRO's settings in elements, for a model of ``hidden_size`` (None: unknown, DeepSpeed's defaults stand in).

    ``filled``: what "auto" is as a dtype when the model is built; None where nobody has filled it in by then.
    """
    for section in SECTIONS:
        reader.mapping(section)
    stage = zero_stage(reader)
    hidden = hidden_size or 0
    offload_optimizer, pin_optimizer = offload(reader, "offload_optimizer", "cpu_offload")
    offload_params, pin_params = offload(reader, "offload_param", "cpu_offload_param")
    size = _sizer(reader)
    return Zero(
        stage=stage,
        offload_optimizer=offload_optimizer if stage >= 1 else "gpu",
        offload_params=offload_params if stage == 3 else "gpu",
        pin_optimizer=pin_optimizer,
        pin_params=pin_params,
        reduce_bucket_size=size("reduce_bucket_size", DEFAULT_BUCKET, hidden * hidden),
        prefetch_bucket_size=size("stage3_prefetch_bucket_size", DEFAULT_PREFETCH, int(0.9 * hidden * hidden)),
        param_persistence_threshold=size("stage3_param_persistence_threshold", DEFAULT_PERSISTENCE, 10 * hidden),
        max_live_parameters=size("stage3_max_live_parameters", DEFAULT_BILLION, 0),
        max_reuse_distance=size("stage3_max_reuse_distance", DEFAULT_BILLION, 0),
        sub_group_size=size("sub_group_size", DEFAULT_BILLION, 0),
        overlap_comm=switch(reader, "overlap_comm", default=stage == 3),
        contiguous_gradients=switch(reader, "contiguous_gradients", default=True),
        fp32_gradient_accumulation=reader.source.at("data_types.grad_accum_dtype") == "fp32",
        secondary_partition_size=size("zero_hpz_partition_size", 1, 0),
        offload_ratio=ratio(reader),
        swap_buffers=size("offload_optimizer.buffer_count", 4, 0),
        param_swap_elements=size("offload_param.buffer_count", 5, 0)
        * size("offload_param.buffer_size", DEFAULT_PARAM_BUFFER, 0),
        max_in_cpu=size("offload_param.max_in_cpu", DEFAULT_BILLION, 0),
        force_cpu_adam=reader.source.at("zero_force_ds_cpu_optimizer", True) is not False,
        loads_fp32=stage == 3 and not any(_says_half(reader, key, filled) for key in ("bf16", "fp16")),
        master_bytes=2 if _has_half_masters(reader) else 4,
        autotp_size=autotp_size(reader),
        own_optimizer=_named_optimizer(reader),
    )


def autotp_size(reader: Reader) -> int:
    """``tensor_parallel.autotp_size``; 0 and 1 turn AutoTP off: deepspeed/runtime/engine.py:280@0.18.9."""
    return max(1, reader.integer("tensor_parallel.autotp_size", 1, "DeepSpeed's default: off"))


def _says_half(reader: Reader, name: str, filled: Precision | None) -> bool:
    """Whether the JSON says a half precision when the model is built."""
    value = reader.source.at(f"{name}.enabled")
    return value is True or (value == "auto" and filled == name)


def ratio(reader: Reader) -> float:
    """``offload_optimizer.ratio``, from 0 to 1."""
    key = ZERO + "offload_optimizer.ratio"
    found = 1.0 if reader.source.at(key) in (None, "auto") else reader.number(key, 1.0, "DeepSpeed's default: 1")
    return min(1.0, max(0.0, found))


def _has_half_masters(reader: Reader) -> bool:
    """Whether master weights and gradients stay in half precision: deepspeed/runtime/precision_config.py@0.18.9."""
    keys = ("bf16.bf16_master_weights_and_grads", "fp16.fp16_master_weights_and_grads")
    return any(reader.source.at(key) is True for key in keys)


def _named_optimizer(reader: Reader) -> str | None:
    """The optimizer of the JSON itself; of a file outside the repository only that there is one."""
    own = reader.source.at("optimizer.type")
    outside = isinstance(reader.source, Section) and reader.source.outside
    return ("optimizer" if outside else str(own)) if own else None


def zero_stage(reader: Reader) -> ZeroStage:
    """``zero_optimization.stage``: 0 to 3."""
    stage = reader.integer(ZERO + "stage", 0, "DeepSpeed's default: 0")
    if stage not in (0, 1, 2, 3):
        reader.refuse(ZERO + "stage", stage, "0, 1, 2 or 3", 0)
        return 0
    return stage


def _sizer(reader: Reader) -> Callable[[str, int, int], int]:
    """A reader of sizes: ``(key, DeepSpeed's default, what "auto" becomes)``, under both of the key's names."""

    def size(key: str, default: int, auto: int) -> int:
        for name in (key, key.removeprefix("stage3_")):
            value = reader.source.at(ZERO + name)
            if value == "auto":
                reader.origins[ZERO + key] = f"{ZERO}{name}: auto"
                return auto or default
            if value is not None:
                return reader.integer(ZERO + name, default)
        reader.origins[ZERO + key] = f"DeepSpeed's default: {default:g}"
        return default

    return size


def switch(reader: Reader, key: str, *, default: bool) -> bool:
    """A flag of ZeRO's, where "auto" is the default."""
    return default if reader.source.at(ZERO + key) in (None, "auto") else reader.flag(ZERO + key, default)


def offload(reader: Reader, key: str, deprecated: str) -> tuple[Device, bool]:
    """Where a state lives, and whether it is pinned there (default false until DeepSpeed 0.19.5)."""
    device = reader.source.at(f"{ZERO}{key}.device")
    if device is None and reader.source.at(ZERO + deprecated) is True:
        device = "cpu"
    if device not in (None, "none", "auto", "cpu", "nvme"):
        reader.refuse(f"{ZERO}{key}.device", device, "none, cpu or nvme", "none")
    where: Device = device if device in ("cpu", "nvme") else "gpu"
    return where, reader.source.at(f"{ZERO}{key}.pin_memory") is True
