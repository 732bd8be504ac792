"""Several traces of one config as one architecture, and with what else is known of the model."""

from collections.abc import Mapping, Sequence

from advisor.models.architecture import Architecture
from advisor.models.config import Config
from advisor.models.count import quantization
from advisor.models.search import Unknown
from advisor.models.traced import Facts
from advisor.record import replace


def traceable_facts(facts: Facts) -> Facts:
    """The facts without adapters on stacked experts, which the trace leaves to the formulas."""
    return replace(facts, adapter=replace(facts.adapter, parameters=())) if facts.adapter else facts


def traced_under(model: Architecture, facts: Facts) -> bool:
    """Whether a trace was made under these facts."""
    return model.trace is not None and any(one == facts for one, _ in model.trace.outside)


def together(found: Sequence[Architecture]) -> Architecture:
    """The first, with the traces of all others that are of the same transformers and see the same layers."""
    first = found[0]
    alike = [one for one in found if version(one) == version(first) and shapes(one) == shapes(first)]
    blocks = (
        replace(first.blocks[index], traces=tuple(trace for one in alike for trace in one.blocks[index].traces))
        for index in range(len(first.blocks))
    )
    outside = tuple(each for one in alike if one.trace for each in one.trace.outside)
    return replace(first, blocks=tuple(blocks), trace=first.trace and replace(first.trace, outside=outside))


def version(model: Architecture) -> str:
    """Of which transformers a model was traced."""
    return model.trace.version if model.trace else ""


def shapes(model: Architecture) -> list[tuple[int, int]]:
    """How many layers of how many elements there are."""
    return [(block.count, block.parameters) for block in model.blocks]


def joined(found: Sequence[Architecture], model: Architecture | Unknown, config: Mapping[str, object]) -> Architecture:
    """A known architecture with the traces of its layers; an unknown one as it was traced."""
    traced = together(found)
    note = f"traced from transformers {version(traced)}: {traced.class_name}"
    if isinstance(model, Architecture) and shapes(model) == shapes(traced):
        pairs = zip(model.blocks, traced.blocks, strict=True)
        blocks = tuple(replace(one, traces=other.traces) for one, other in pairs)
        return replace(model, blocks=blocks, trace=traced.trace, extra=(*model.extra, note))
    named = replace(traced, name=model.name, extra=(note, *traced.extra))
    if isinstance(model, Architecture):
        return replace(named, quantized=model.quantized, source=model.source, towers=model.towers)
    read = Config(config, traced.model_type, model.name)
    return replace(named, quantized=quantization(read), source=f"transformers {version(traced)}")
