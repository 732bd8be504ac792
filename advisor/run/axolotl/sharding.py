"""How axolotl spreads the run over GPUs, and the dtype rewrites that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.models import Architecture
from advisor.run import Fsdp, Zero
from advisor.run.axolotl.reader import FALSE, Reader
from advisor.util import is_list

if TYPE_CHECKING:
    from advisor.run import Run
    from advisor.run.axolotl.facts import AxolotlFacts, SizeFacts

# axolotl/utils/schemas/enums.py:147@0.19.0: with these the embeddings stay in fp32.
KERNELS_WITHOUT_CAST = frozenset({"eager", "sdpa"})
VERSION_KEYS = ("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")
"""Where FSDP's version may stand, the first that counts first."""


def sizes(reader: Reader) -> SizeFacts:
    """Parallel sizes; 0 is as none: axolotl/utils/schemas/validation.py:1779-1792, utils/trainer.py:632-647@0.19.0.

    That of experts is a key of a plugin, and dropped without it (integrations/expert_parallel/args.py:20-36).
    """
    older = reader.integer("sequence_parallel_degree", 0)
    spread = "ExpertParallelPlugin" in {name.rsplit(".", 1)[-1] for name in reader.texts("plugins")}
    return {
        "tensor_parallel_size": reader.integer("tensor_parallel_size", 1) or 1,
        "context_parallel_size": reader.integer("context_parallel_size", older) or older or 1,
        "expert_parallel_size": reader.integer("expert_parallel_size", 1, least=1) if spread else 1,
        "dp_shard_size": reader.integer("dp_shard_size", 0) or None,
        "dp_replicate_size": reader.integer("dp_replicate_size", 1) or 1,
    }


def fsdp(reader: Reader) -> Fsdp | None:
    """FSDP's settings, or None without it.

    The version is pinned to 1 where none is given (validation.py:1216-1232@0.19.0).
    """
    given: Mapping[str, object] = reader.mapping("fsdp_config") if reader.has("fsdp_config") else {}
    strategies = strategies_of(reader.take("fsdp", (), "not given"))
    if not given and not strategies:
        return None
    settings = without_prefixes(given)
    efficient = truth(settings, "cpu_ram_efficient_loading")
    version = reader.source.at("fsdp_version") or settings.get("fsdp_version") or settings.get("version") or 1
    reader.origins["fsdp_version"] = (
        "fsdp_version" if reader.has("fsdp_version") else "axolotl pins version 1 where none is given"
    )
    reader.origins["fsdp"] = "fsdp_config" if given else "fsdp"
    return Fsdp(
        version=2 if str(version) == "2" else 1,
        reshard_after_forward=reshards(settings, strategies),
        offload_params=truth(settings, "offload_params") or "offload" in strategies,
        pin_memory=truth(settings, "cpu_offload_pin_memory", default=True),
        cpu_ram_efficient_loading=efficient,
        # axolotl/loaders/model.py:1007-1036@0.19.0
        loads_quantized_in_pieces=efficient and reader.flag("qlora_sharded_model_loading"),
        activation_checkpointing=truth(settings, "activation_checkpointing"),
        wraps_layers=wraps_layers(settings),
    )


def without_prefixes(given: Mapping[str, object]) -> dict[str, object]:
    """The settings of ``fsdp_config`` by their new names."""
    return {key.removeprefix("fsdp_") if key != "fsdp_version" else key: value for key, value in given.items()}


def spelled(run: Run, key: str) -> str | None:
    """The path of a key of ``fsdp_config`` as it is written here, by its new name or its old one."""
    return next((path for path in (f"fsdp_config.{key}", f"fsdp_config.fsdp_{key}") if run.config.has(path)), None)


def strategies_of(value: object) -> frozenset[str]:
    """What the deprecated ``fsdp:`` holds, a list or its words."""
    if is_list(value):
        return frozenset(str(item) for item in value)
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset({"full_shard"} if value is True else ())


def reshards(settings: Mapping[str, object], strategies: frozenset[str]) -> bool:
    """Whether parameters are freed after forward.

    transformers/training_args.py:2811-2883@5.16.1. ``sharding_strategy`` is dropped.
    """
    given = settings.get("reshard_after_forward")
    if given is not None:
        return str(given).lower() not in {"false", "shard_grad_op", "no_shard", "0"}
    return "shard_grad_op" not in strategies


def wraps_layers(settings: Mapping[str, object]) -> bool:
    """Whether each decoder layer is a unit of its own, as by default: transformers/training_args.py:2787@5.16.1."""
    return settings.get("auto_wrap_policy") != "NO_WRAP"


def truth(settings: Mapping[str, object], key: str, default: bool = False) -> bool:
    """A flag among FSDP's settings, written as a boolean or a word."""
    value = settings.get(key)
    return default if value is None else str(value).lower() not in FALSE


def embeddings_stay_fp32(facts: AxolotlFacts) -> bool:
    """Embeddings, head and norms left in fp32.

    axolotl/loaders/model.py:422-489@0.19.0. DeepSpeed's engine undoes it.
    """
    recast = facts["adapter"] is not None or (
        facts["attention_given"] and facts["attention"] not in KERNELS_WITHOUT_CAST
    )
    return facts["sharding"] is None and not recast and facts["loss"] != "cut"


def upcasts_unquantized(reader: Reader, model: Architecture | None, facts: AxolotlFacts) -> bool:
    """PEFT's upcast of what is not quantized: axolotl/loaders/model.py:1110-1146@0.19.0."""
    if facts["adapter"] is None or not (reader.flag("load_in_8bit") or reader.flag("load_in_4bit")):
        return False
    match facts["sharding"]:
        case Fsdp(cpu_ram_efficient_loading=efficient) if efficient or facts["adapter"] == "qlora":
            return False
        case Zero(stage=3):
            return False
        case _:
            spared = model is not None and not model.family.upcast_for_lora and facts["adapter"] == "lora"
            return not facts["quantize_moe_experts"] and not spared
