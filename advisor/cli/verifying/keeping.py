"""What stays of a verified run: a line of this machine's own file, and a block that may be pasted."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict

from advisor.about import REPOSITORY
from advisor.accuracy.blocks import block_of
from advisor.cli.verifying.planning import Trial
from advisor.cli.verifying.request import Request
from advisor.cli.verifying.seen import Seen
from advisor.hardware.gpu import DETECTED
from advisor.models import resolve_with_config
from advisor.report.style import Style
from advisor.run.history import append
from advisor.session.measuring import measured_run
from advisor.util import path_shown


def kept_lines(trial: Trial, seen: Seen, request: Request, style: Style) -> Iterator[str]:
    """Adds the record, and shows it; on other cards than those that are there nothing is kept."""
    run = trial.run
    stated = run.hardware is not None and run.hardware.source != DETECTED
    if stated and not request.cpu:
        yield from style.prose("Not kept: the GPUs are stated, and may be others than those that are here.")
        return
    record = measured_run(
        run,
        trial.estimate,
        allocated=seen.allocated,
        reserved=seen.reserved,
        steps=seen.steps,
        seconds=seen.seconds,
        gpu=not request.cpu,
    )
    try:
        target = append(record)
    except (OSError, RuntimeError) as error:
        yield from style.prose(f"Not kept: {error}")
        return
    yield f"Kept in {path_shown(str(target))}, which nothing but this machine's estimates reads:"
    yield f"  {json.dumps(asdict(record))}"


def block_lines(trial: Trial, seen: Seen, request: Request, style: Style) -> Iterator[str]:
    """The block, fenced as an issue wants it."""
    where = f"into an issue ({REPOSITORY}/issues)" if REPOSITORY else "into an issue"
    words = f"Nothing was sent. This block may be pasted {where}; it has no path, no name and no data in it:"
    yield from style.prose(words)
    yield "```json"
    yield json.dumps(_block(trial, seen, request))
    yield "```"


def _block(trial: Trial, seen: Seen, request: Request) -> dict[str, object]:
    """The run with its figures, in bytes."""
    figures: dict[str, object] = {
        "device": "cpu" if request.cpu else "cuda",
        "outcome": "ok",
        "rows": request.rows,
        "steps": seen.steps,
        "foreseen": trial.estimate.allocated_peak,
        "allocated": seen.allocated,
        "reserved": max(seen.reserved, seen.allocated),
        "host": seen.host,
        "seconds": seen.seconds,
        "seen": {phase.name: phase.allocated for phase in seen.phases},
        "phases": {phase.name: phase.bytes for phase in trial.estimate.phases},
    }
    return block_of(trial.run, _model_config(trial), figures)


def _model_config(trial: Trial) -> dict[str, object]:
    """The config of the model, which is looked for as the estimate did."""
    run, context = trial.run, trial.found.opened.context
    name = str(run.config.get("base_model_config") or run.config.get("base_model"))
    _, described = resolve_with_config(
        name,
        folder=os.path.dirname(run.config.file) or ".",
        model_config=context and context.model_config,
    )
    return dict(described or {})
