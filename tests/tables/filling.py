"""What becomes of ``"auto"`` in a DeepSpeed config, asked of the real transformers and accelerate."""

import importlib
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

Row = dict[str, Any]


def auto(path: tuple[str, ...]) -> Any:
    """What becomes of ``"auto"`` there: True if the trainer fills it in, a constant, or None if it stays."""
    values: Row = {"zero_optimization": {"stage": 3}}
    place = values
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = "auto"
    try:
        if at(trained(values), path) != "auto":
            return True
        found = at(prepared(values), path)
    except (AttributeError, TypeError, ValueError):
        return None
    if found == "auto":
        return None
    return found if found != float("inf") else True


def at(values: Any, path: tuple[str, ...]) -> Any:
    """The value at a path."""
    for name in path:
        values = values[name]
    return values


def trained(values: Row) -> Row:
    """The config after transformers has filled it in for a run."""
    deepspeed: Any = importlib.import_module("transformers.integrations.deepspeed")
    config = deepspeed.HfTrainerDeepSpeedConfig(deepcopy(values))
    config.trainer_config_process(ARGUMENTS)
    config.trainer_config_finalize(ARGUMENTS, MODEL, 10)
    return config.config


def prepared(values: Row) -> Row:
    """The config as accelerate hands it to DeepSpeed. ``ValueError`` where an ``"auto"`` is left.

    ``Accelerator._prepare_deepspeed``: accelerate/accelerator.py:2201-2334@1.13.0.
    """
    deepspeed: Any = importlib.import_module("transformers.integrations.deepspeed")
    accelerate: Any = importlib.import_module("accelerate.utils")
    config = deepspeed.HfTrainerDeepSpeedConfig(deepcopy(values))
    config.trainer_config_process(ARGUMENTS)
    plugin = accelerate.DeepSpeedPlugin(hf_ds_config=config)
    config.trainer_config_finalize(ARGUMENTS, MODEL, 10)
    sizes = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
    known: Row = {f"zero_optimization.{name}": 1 for name in sizes}
    known |= {"train_micro_batch_size_per_gpu": 1, "train_batch_size": 1, "gradient_clipping": 1.0}
    known |= {"zero_optimization.stage3_gather_16bit_weights_on_model_save": False}
    plugin.deepspeed_config_process(must_match=False, **known)
    return plugin.deepspeed_config


def warmup_steps(_steps: int) -> int:
    """None."""
    return 0


MODEL = SimpleNamespace(config=SimpleNamespace(hidden_size=4096))
ARGUMENTS = SimpleNamespace(
    world_size=1,
    per_device_train_batch_size=1,
    gradient_accumulation_steps=1,
    max_grad_norm=1.0,
    learning_rate=1e-4,
    adam_beta1=0.9,
    adam_beta2=0.999,
    adam_epsilon=1e-8,
    weight_decay=0.0,
    save_on_each_node=False,
    fp16=False,
    fp16_full_eval=False,
    bf16=True,
    bf16_full_eval=False,
    get_warmup_steps=warmup_steps,
)
