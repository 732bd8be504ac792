"""What ``advisor verify`` asks of the training that it starts: a few steps, and nothing left behind."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from advisor.record import record

VARIABLE = "ADVISOR_VERIFY"
"""Names the folder of the request to the processes that train."""
PLUGIN = "advisor.plugins.axolotl.AdvisorPlugin"
FILE = "request.json"
DROPPED = re.compile(
    "(wandb|mlflow|comet|swanlab|trackio|otel|hub|hf_mlflow)_.*"
    "|use_(wandb|mlflow|comet|swanlab|trackio|otel_metrics|tensorboard)"
    "|push_dataset_to_hub|resume_from_checkpoint|auto_resume_from_checkpoints"
    "|save_(steps|first_step|total_limit)|saves_per_epoch|load_best_model_at_end|early_stopping_patience"
    "|eval_(steps|strategy|table_size|causal_lm_metrics)|evals_per_epoch|evaluation_strategy"
    "|do_bench_eval|do_causal_lm_eval|loss_watchdog_.*|profiler_.*|dynamic_checkpoint|fix_untrained_tokens"
    "|dataset_exact_deduplication|dataset_shard_.*|debug"
)
"""Keys that report, save, resume, evaluate more often, stop early, or leave rows out."""


@record
class Request:
    """``rows``: ``synthetic`` ones of the longest length, or the config's ``own``."""

    folder: str
    steps: int
    evaluates: bool
    cpu: bool = False
    rows: str = "synthetic"
    length: int = 0
    """Tokens of a synthetic row, of which ``each`` make a row of a batch."""
    each: int = 1
    eval_length: int = 0
    eval_each: int = 1


def requested() -> Request | None:
    """The request that this process was started with; None where nobody verifies."""
    folder = os.environ.get(VARIABLE)
    return Request(**json.loads(Path(folder, FILE).read_text(encoding="utf-8"))) if folder else None


def write_request(request: Request) -> None:
    """Leaves it where the processes that train look."""
    Path(request.folder, FILE).write_text(json.dumps(asdict(request)), encoding="utf-8")


def changed(values: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """The values of a config as they are trained to verify it.

    One evaluation, after the last step: axolotl/core/builders/base.py:508-533@0.19.0. ``plugins``: this one first.
    Synthetic rows stay in their order, so that the batches are the same each time.
    """
    folder = Path(request.folder)
    kept = {key: value for key, value in values.items() if not DROPPED.fullmatch(str(key))}
    others: list[str] = [name for name in values.get("plugins") or () if name != PLUGIN]
    evaluation = {"eval_steps": request.steps} if request.evaluates else {}
    # Without a seed axolotl shuffles otherwise each time: utils/data/shared.py:687-722@0.19.0.
    order = {} if request.rows == "own" else {"shuffle_merged_datasets": False}
    return {
        **kept,
        **evaluation,
        **order,
        "eval_strategy": "steps" if request.evaluates else "no",
        "plugins": [PLUGIN, *others],
        "max_steps": request.steps,
        "num_epochs": 1,
        "save_strategy": "no",
        "logging_steps": 1,
        "output_dir": str(folder / "out"),
        "dataset_prepared_path": str(folder / "prepared"),
    }
