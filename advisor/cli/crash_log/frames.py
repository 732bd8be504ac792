"""Frames of a traceback -> the phase of training that a run died in."""

import re
from collections.abc import Mapping
from typing import Literal

from advisor.memory import PhaseName

Moment = Literal["load", "prepare", "forward and loss", "backward", "optimizer step", "evaluation", "save"]
BEGINNING = "Traceback (most recent call last)"
MOST_OF_A_TRACEBACK, MOST_OF_A_FRAME = 200_000, 400
"""Characters: what is longer is no traceback, and no frame."""

# What a frame of each moment calls, as the traceback prints it: the first that matches, from what encloses the others.
MARKS: Mapping[Moment, re.Pattern[str]] = {
    "save": re.compile(
        r"in (?:_save_checkpoint|save_model|_save|save_pretrained|get_state_dict|_zero3_consolidated_16bit_state_dict)"
    ),
    "evaluation": re.compile(r"in (?:evaluation_loop|prediction_step|_maybe_log_save_evaluate|evaluate|_evaluate)\b"),
    "optimizer step": re.compile(
        r"in (?:_take_model_step|optimizer_step|_optimizer_step|_(?:multi_tensor|single_tensor|fused)_adamw?"
        r"|unscale_and_clip_grads|clip_grad_norm_|_prepare_fp32_grad_for_sub_group)\b"
        r"|torch/optim/\w+\.py|bitsandbytes/optim/|in step\b.*\n.*(?:optimizer|self\.step)"
    ),
    "backward": re.compile(
        r"in (?:backward|_engine_run_backward|run_backward|unpack_hook|reduce_ready_partitions_and_remove_grads)\b"
        r"|torch/autograd/(?:__init__|graph|function)\.py|\.backward\("
    ),
    "forward and loss": re.compile(r"in (?:compute_loss|forward|training_step|ForCausalLMLoss|cross_entropy)\b"),
    "prepare": re.compile(
        r"in (?:_prepare_deepspeed|_prepare_fsdp2?|_configure_zero_optimizer|initialize|prepare_model)\b"
    ),
    "load": re.compile(
        r"in (?:from_pretrained|load_model|_load_pretrained_model|_build_model|load|prepare_model_for_kbit_training"
        r"|_load_state_dict_into_meta_model|convert_and_load_state_dict_in_model)\b"
    ),
}
PHASES: Mapping[Moment, PhaseName] = {
    "load": "load",
    "prepare": "load",
    "forward and loss": "forward and loss",
    "backward": "backward",
    "optimizer step": "optimizer step",
    "evaluation": "evaluation",
}
"""The phase of an estimate that a moment belongs to; saving has none."""


def moment_of(log: str, position: int) -> Moment | None:
    """The moment that the traceback before ``position`` is in; None if there is none, or it names none."""
    start = log.rfind(BEGINNING, 0, position)
    lines = log[max(start, position - MOST_OF_A_TRACEBACK) : position].split("\n") if start >= 0 else []
    frames = "\n".join(line[:MOST_OF_A_FRAME] for line in lines)
    return next((moment for moment, mark in MARKS.items() if mark.search(frames)), None)
