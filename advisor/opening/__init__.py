"""Files -> `Run`: finds the DeepSpeed JSON, the model and the hardware that a YAML means."""

from advisor.opening.context import Context, LoadedRun
from advisor.opening.runs import Config, config_document, open_configs, open_json, open_run
from advisor.opening.which_deepspeed import deepspeed_for, json_of, left_alone
from advisor.opening.which_hardware import detected, hardware_for, plugin_hardware, pragma, that_trains

__all__ = [
    "Config",
    "Context",
    "LoadedRun",
    "config_document",
    "deepspeed_for",
    "detected",
    "hardware_for",
    "json_of",
    "left_alone",
    "open_configs",
    "open_json",
    "open_run",
    "plugin_hardware",
    "pragma",
    "that_trains",
]
