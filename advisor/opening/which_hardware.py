"""The hardware that a run is for: who says it, and whose word comes first."""

from functools import lru_cache
from math import prod

from advisor.documents import Directive, Document
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.opening.context import Context
from advisor.record import replace
from advisor.run.axolotl.preference import preference
from advisor.run.axolotl.reader import Reader
from advisor.run.unreadable import is_placeholder

PARALLEL = (
    "tensor_parallel_size",
    "context_parallel_size",
    "expert_parallel_size",
    "dp_shard_size",
    "dp_replicate_size",
)
"""The keys that spread ranks over GPUs."""
_PLUGIN_GPUS = "advisor.gpus"


def hardware_for(config: Document, context: Context) -> Hardware | None:
    """The first of: the call, the YAML's own comment, its key for the plugin, the settings, detection."""
    if context.hardware is not None:
        return context.hardware
    if context.gpus:
        return replace(parse_hardware(context.gpus, own=context.own), source="--gpus")
    said = pragma(config, "gpus")
    if said is not None:
        return parse_hardware(said.argument, file=config.file, line=said.line, own=context.own)
    if (found := plugin_hardware(config, context)) is not None:
        return found
    if context.default_gpus:
        return parse_hardware(context.default_gpus, own=context.own)
    return detected() if context.detects else None


def that_trains(config: Document, hardware: Hardware) -> Hardware:
    """The same without the GPUs that a vLLM server takes of a full host, unless the YAML spreads its ranks over all."""
    if not config.has("trl") or hardware.nodes > 1:
        return hardware
    reader = Reader(config)
    made = preference(reader, None, hardware.world_size)["rollouts"]
    left = made.left_to_train(hardware.gpus_per_node) if made is not None else None
    ranks = prod(reader.integer(key, 1) or 1 for key in PARALLEL)
    if made is None or left is None or left % ranks:
        return hardware
    served = (
        f"{made.server_gpus} of the {hardware.gpus_per_node} GPUs are counted as the vLLM server's, so {left} train;"
        f" if it is on another host, name that in `trl.vllm_server_host`"
    )
    return replace(hardware, gpus_per_node=left, assumed="; ".join(filter(None, (hardware.assumed, served))))


def plugin_hardware(config: Document, context: Context) -> Hardware | None:
    """The hardware that the plugin is told in the YAML: ``advisor: {gpus: ...}``."""
    said = config.at(_PLUGIN_GPUS)
    if not isinstance(said, str) or not said.strip() or is_placeholder(said):
        return None
    span = config.span(_PLUGIN_GPUS)
    return parse_hardware(said, file=config.file, line=span.line if span else 0, own=context.own)


def pragma(config: Document, name: str) -> Directive | None:
    """The first comment of the YAML that says what its ``name`` is."""
    return next((directive for directive in config.directives if directive.name == name), None)


@lru_cache(maxsize=1)
def detected() -> Hardware | None:
    """This machine's GPUs, asked once."""
    return detect()
