"""What the comments of a config say of this run: the words that hold, and the figures."""

from collections.abc import Mapping
from typing import Any

from advisor.learning import Band, Training, rate_shown
from advisor.new.comments import comment
from advisor.new.draft import rate_for
from advisor.new.start import Start
from advisor.new.writing import written
from advisor.run import Run

KINDS: Mapping[Training, str] = {"full": "all weights", "lora": "LoRA", "qlora": "QLoRA"}
SHAPES = "rows may be turns (`messages`), `instruction` and `output`, or pairs (`chosen`, `rejected`)"


def config_text(start: Start, run: Run, values: Mapping[str, Any], training: Training) -> str:
    """The config with its comments."""
    tags, facts = tags_of(start, run, training), facts_of(start, run, training)

    def says(path: str, value: Any) -> str:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return comment(path, tags | {f"value:{shown}"}, facts)

    return written(values, head_of(start, training), says)


def head_of(start: Start, training: Training) -> list[str]:
    """What it is, and for which hardware."""
    kind = f"{'DPO, ' if start.seen.paired else ''}{KINDS[training]}"
    return [f"{start.request.model}: {kind} on {start.hardware.title}, written by `advisor new`"]


def tags_of(start: Start, run: Run, training: Training) -> set[str]:
    """The words that comments may ask for."""
    seen = start.seen
    holds = {
        "dpo": seen.paired,
        "chat": start.chats,
        "base": not start.chats,
        "packed": run.sample_packing,
        "no-data": seen.rows is None,
        "rows": seen.rows is not None,
        "no-evaluation": not start.held_back,
        "longest": seen.longest is not None,
        "asked-length": start.request.sequence_len is not None,
        "mapping": isinstance(seen.entry.get("type"), dict),
        "masters": run.zero is not None and run.adapter is None and run.has_masters,
        "few": run.world_size == 1,
    }
    return {training, *(word for word, does in holds.items() if does)}


def facts_of(start: Start, run: Run, training: Training) -> dict[str, str]:
    """The figures that comments name."""
    seen, band = start.seen, rate_for(start, training)
    gpus = f"{run.world_size} GPU{'s' if run.world_size > 1 else ''}"
    offloaded = run.zero is not None and (run.zero.offload_optimizer != "gpu" or run.zero.offload_params != "gpu")
    rows = f"{seen.rows:,}" if seen.rows is not None else ""
    return {
        "parameters": _billions(start.model.parameters),
        "why": seen.why,
        "shapes": SHAPES,
        "rows": rows,
        "held_back": f"{round((seen.rows or 0) * start.held_back):,}",
        "longest": f"{seen.longest or 0:,}",
        "attention": run.attention + (" attention" if run.attention in {"flash", "flex"} else ""),
        "rate_source": f"{KINDS[training]}; {_clause(band)}",
        "rate": rate_shown(band.default),
        "gpus": gpus,
        "micro": str(run.micro_batch_size),
        "accumulation": str(run.gradient_accumulation_steps),
        "global_rows": f"{run.global_batch_size:,}",
        "sequence_len": f"{run.sequence_len:,}",
        "step_tokens": f"{run.global_batch_size * run.sequence_len:,}",
        "stage": str(run.zero_stage),
        "offload": " with offload to host memory" if offloaded else "",
    }


def _clause(band: Band) -> str:
    """The part of a band's source that has its default, else the first; no longer than a line holds."""
    parts = band.source.split("; ")
    return next((part for part in parts if rate_shown(band.default) in part), f"between: {parts[0]}")


def _billions(count: int) -> str:
    """``8.2 B``."""
    return f"{count / 1e9:,.1f} B" if count >= 1e9 else f"{count / 1e6:,.0f} M"
