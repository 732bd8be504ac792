"""DeepSpeed's own config class, asked in a process of its own.

A question is ``{"config", "arguments", "hidden_size"}``: the values of a JSON, the trainer's arguments that they must
agree with, and the model's width. transformers fills in each "auto" first, as before a run. An answer is
``{"problems"}``.
"""

import importlib
import os
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from advisor.schemas.validate.server import Values, problems, serve
from advisor.util import is_mapping

MODULES = ("transformers.integrations.deepspeed", "deepspeed.runtime.config")
ALWAYS = {"save_on_each_node": False, "fp16_full_eval": False, "bf16_full_eval": False}
STEPS = 10


def resolved(values: Values, arguments: Values, hidden_size: int) -> Values:
    """The config as DeepSpeed gets it: each "auto" filled in by transformers."""
    integration: Any = importlib.import_module(MODULES[0])
    schedule = _schedule_of(values)

    def warmup(_steps: int) -> int:
        return schedule.get("warmup_num_steps", 0)

    args = SimpleNamespace(**ALWAYS, **arguments, get_warmup_steps=warmup)
    model = SimpleNamespace(config=SimpleNamespace(hidden_size=hidden_size))
    config = integration.HfTrainerDeepSpeedConfig(deepcopy(values))
    config.trainer_config_process(args)
    config.trainer_config_finalize(args, model, schedule.get("total_num_steps", STEPS))
    micro_batch = {"train_micro_batch_size_per_gpu": arguments["per_device_train_batch_size"]}
    return config.config | micro_batch if arguments["sets_micro_batch"] else config.config


def _schedule_of(values: Any) -> Values:
    """The file's own counts of steps. The trainer's are known once it has its data, so these count as agreed."""
    for key in ("scheduler", "params"):
        values = values.get(key) if is_mapping(values) else None
    return {name: count for name, count in values.items() if isinstance(count, int)} if is_mapping(values) else {}


def held(values: Values, arguments: Values, hidden_size: int) -> Any:
    """DeepSpeed's config object, in a world of the size that the arguments say."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    config: Any = importlib.import_module(MODULES[1])
    dist, size = config.dist, arguments["world_size"]

    def rank(_group: Any = None) -> int:
        return 0

    def world_size(_group: Any = None) -> int:
        return size

    asked = dist.get_rank, dist.get_world_size
    dist.get_rank, dist.get_world_size = rank, world_size
    try:
        return config.DeepSpeedConfig(resolved(values, arguments, hidden_size))
    finally:
        dist.get_rank, dist.get_world_size = asked


def answer(asked: Values) -> Values:
    """What transformers and DeepSpeed say of one config."""
    try:
        held(asked["config"], asked["arguments"], asked["hidden_size"])
    except Exception as error:
        return {"problems": [part for problem in problems(error) for part in _mismatches(problem)]}
    return {"problems": []}


def _mismatches(problem: Values) -> list[Values]:
    """transformers lists all values that are at odds with the trainer's in one message; each has its own place."""
    lines = [line.removeprefix("- ds ") for line in problem["message"].splitlines() if line.startswith("- ds ")]
    return [problem | {"message": f"{line}: the trainer and the JSON differ"} for line in lines] or [problem]


def main() -> None:
    """Serve."""
    serve(answer, MODULES, DS_ACCELERATOR="cpu")
