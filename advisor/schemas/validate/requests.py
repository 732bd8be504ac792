"""What is asked of the libraries about a run."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from advisor.run import Run
from advisor.run.stack import release

Values = dict[str, Any]
# Without stated GPUs, one that lacks nothing that axolotl asks about.
ABLE: Values = {"bf16": True, "fp8": True, "tf32": True, "n_gpu": 1, "compute_capability": "sm_90"}
UNKNOWN_HIDDEN_SIZE = 4096
# transformers/training_args.py:779-858@5.16.1.
DEFAULTS = {
    "learning_rate": 5e-5,
    "weight_decay": 0.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "max_grad_norm": 1.0,
}


def axolotl_question(run: Run) -> Values:
    """The YAML, on the run's hardware."""
    return {
        "config": dict(run.config),
        "folder": os.path.abspath(run.working_directory),
        "capabilities": capabilities(run),
        "torch": ".".join(map(str, release(run.stack.torch))),
    }


def deepspeed_question(run: Run, values: Mapping[str, Any]) -> Values:
    """The JSON, and what the trainer is told."""
    hidden_size = run.model.hidden_size if run.model else UNKNOWN_HIDDEN_SIZE
    return {"config": dict(values), "arguments": arguments(run), "hidden_size": hidden_size}


def capabilities(run: Run) -> Values:
    """The GPUs as axolotl/cli/config.py:361-384@0.19.0 would find them."""
    if run.hardware is None:
        return ABLE
    gpu = run.hardware.gpu
    major, minor = gpu.compute_capability or (0, 0)
    return {
        "bf16": gpu.bf16,
        "fp8": (major, minor) >= (9, 0),
        "tf32": gpu.tf32,
        "n_gpu": run.world_size,
        "compute_capability": f"sm_{major}{minor}" if gpu.compute_capability else None,
    }


def arguments(run: Run) -> Values:
    """The trainer's arguments that a DeepSpeed config must agree with.

    transformers/integrations/deepspeed.py:133-190@5.16.1; axolotl/core/builders/base.py:266-277,632-668@0.19.0. Where
    samples are packed, axolotl writes the micro batch into the JSON's values itself (core/builders/causal.py:460-463).
    """
    return {
        **{name: _number_at(run, name, default) for name, default in DEFAULTS.items()},
        "world_size": run.world_size,
        "per_device_train_batch_size": run.micro_batch_size,
        "gradient_accumulation_steps": run.gradient_accumulation_steps,
        "sets_micro_batch": run.sample_packing,
        "fp16": run.precision == "fp16",
        "bf16": run.precision == "bf16",
    }


def _number_at(run: Run, key: str, default: float) -> float:
    """A number of the YAML, where ``2e-5`` is a string to PyYAML."""
    with contextlib.suppress(TypeError, ValueError):
        return float(run.config.get(key))  # pyright: ignore[reportArgumentType]
    return default
