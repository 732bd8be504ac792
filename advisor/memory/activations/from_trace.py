"""Layers traced from the real modules: exact under the trace's facts, else in proportion to the formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from advisor.memory.activations.dtypes import adapters, casts_inputs
from advisor.record import replace
from advisor.run import Lora

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import Block
    from advisor.models.traced import AdapterFacts, Facts, Growth, LayerTrace
    from advisor.run import Run

What = Literal["saved", "working", "forward", "entered"]
LABELS = 8
"""Bytes of a token's label, which the trace does without."""
PEAKS = {"working", "forward"}


def facts_of(run: Run, windows: tuple[int, ...]) -> Facts:
    """What a trace must know of a run whose model has these windows."""
    from advisor.models.traced import Facts

    single = run.precision == "fp32"
    kernel = run.attention if run.attention in {"eager", "sdpa"} else "flash"
    return Facts(
        single=single,
        autocast=run.autocast,
        fp32_weights=run.stack.base_dtype == "float32" and run.sharding is None,
        fp32_stream=run.fp32_residual_stream and not single,
        attention=kernel,  # pyright: ignore[reportArgumentType]
        padded=kernel == "sdpa" and _may_be_padded(run),
        beyond=max((window for window in windows if window <= run.sequence_len), default=0),
        adapter=_adapter_facts(run),
    )


def _may_be_padded(run: Run) -> bool:
    """Whether sdpa gets a mask in each layer, windows aside: see ``attention.masked``."""
    padded = run.micro_batch_size > 1 or run.paired or run.pads_to_sequence_len or run.sample_packing
    return padded and run.stack.padding != "packed"


def _adapter_facts(run: Run) -> AdapterFacts | None:
    """The adapter as a trace must know it."""
    from advisor.models.traced import AdapterFacts

    lora = run.lora
    if run.adapter is None or lora is None:
        return None
    return AdapterFacts(
        rank=lora.rank,
        dropout=lora.dropout > 0,
        width=adapters(run, 2).weight,
        targets=lora.targets,
        targets_pattern=lora.targets_pattern,
        target_linear=lora.target_linear,
        rank_pattern=tuple(sorted(lora.rank_pattern.items())),
        parameters=lora.target_parameters,
        casts=casts_inputs(run),
    )


def like(run: Run, facts: Facts) -> Run:
    """The run under the facts of a trace, so that the formulas can be asked what they say of it."""
    one = facts.adapter
    return replace(
        run,
        hardware=None,  # the trace has the kernels of a card that has them
        precision="fp32" if facts.single else "bf16",
        autocast=facts.autocast,
        fp32_residual_stream=facts.fp32_stream,
        attention=facts.attention,
        pads_to_sequence_len=facts.padded,
        stack=replace(
            run.stack,
            base_dtype="float32" if facts.fp32_weights else None,
            padding="full" if facts.padded else "packed",
        ),
        sharding=None,
        quantization=run.quantization if one is None or not one.casts else None,
        adapter="lora" if one else None,
        lora=_lora_like(one) if one else None,
    )


def _lora_like(one: AdapterFacts) -> Lora:
    """The adapter of a trace."""
    return Lora(
        rank=one.rank,
        alpha=1,
        dropout=0.1 if one.dropout else 0.0,
        targets=one.targets,
        targets_pattern=one.targets_pattern,
        target_linear=one.target_linear,
        rank_pattern=dict(one.rank_pattern),
        target_parameters=one.parameters,
        fp32=one.width == 4,
    )


def windows_of(model: Architecture | None) -> tuple[int, ...]:
    """The windows that the trace of a model knows."""
    return model.trace.windows if model is not None and model.trace is not None else ()


def nearest(run: Run, block: Block) -> tuple[LayerTrace, bool]:
    """The trace of a layer that is most like the run, and whether it is under the same facts."""
    facts = facts_of(run, windows_of(run.model))
    found = max(block.traces, key=lambda trace: trace.facts.likeness(facts))
    return found, found.facts == facts


def measured(run: Run, block: Block, what: What, formula: Callable[[Run, Block], int]) -> int:
    """What was traced; under other facts, in the proportion that the formulas give. The formula where nothing was."""
    if not block.traces:
        return formula(run, block)
    found, exact = nearest(run, block)
    growth: Growth = getattr(found, what)
    traced = (growth.most if what in PEAKS else growth.at)(run.tokens, run.sequence_len)
    return traced if exact else scaled(traced, formula(run, block), formula(like(run, found.facts), block))


def scaled(traced: int, wanted: int, derived: int) -> int:
    """What was traced, in the proportion of two formulas."""
    return traced * wanted // derived if derived > 0 else traced


def traced_text(run: Run, block: Block) -> str:
    """The arithmetic of what a traced layer keeps, per token."""
    found, exact = nearest(run, block)
    traced = found.saved.written(run.sequence_len)
    return f"{traced}, traced" if exact else f"{traced}, traced under other facts and scaled,"


def measured_outside(run: Run, model: Architecture, formula: Callable[[Run], int]) -> int:
    """What was traced outside of layers, and the labels; else the formula."""
    if model.trace is None:
        return formula(run)
    facts = facts_of(run, model.trace.windows)
    found, growth = max(model.trace.outside, key=lambda each: each[0].likeness(facts))
    traced = growth.at(run.tokens, run.sequence_len) + LABELS * run.tokens
    traced -= formula(replace(run, loss="plain")) - formula(run)  # fused losses let go of the head's input
    return traced if found == facts else scaled(traced, formula(run), formula(like(run, found)))


def traced_source(run: Run) -> str:
    """Where the numbers of a traced model come from; empty for one that the formulas know."""
    model = run.model
    if model is None or model.trace is None:
        return ""
    exact = all(nearest(run, block)[1] for block in model.blocks if block.traces)
    scaled = "" if exact else ", scaled by the formulas to facts that were not traced"
    return f"traced from transformers {model.trace.version}{scaled}"
