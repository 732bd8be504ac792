"""The hardware that a run is for: who says it, and whose word comes first."""

from functools import lru_cache

from advisor.documents import Directive, Document
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.opening.context import Context
from advisor.record import replace
from advisor.run.unreadable import is_placeholder

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
