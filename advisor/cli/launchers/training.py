"""What a launch command is about to train."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from advisor.cli.launchers.launchers import Scale
from advisor.record import record


@record
class Command:
    """What a command is about to do. ``config`` is None where it trains nothing that the advisor can read."""

    config: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Dotted keys of the config with the values that the command gives them."""
    scale: Scale = field(default_factory=Scale)
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that the command sets for itself: ``env CUDA_VISIBLE_DEVICES=0 ...``."""
    reason: str = ""
    """Why there is no config, as a clause."""
    trains: bool = False
    """Whether it is ``axolotl train``, in whichever form, also where its config cannot be read."""
    cloud: str | None = None
    """The YAML of ``--cloud``."""
    folder: str = ""
    """The folder that a script changes to before it trains."""
    remark: str = ""
    """What else to say of the command."""
