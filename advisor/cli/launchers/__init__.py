"""``advisor launch``: what a launch command is about to train, and on how many processes."""

from advisor.cli.launchers.command import read_command
from advisor.cli.launchers.training import Command

__all__ = ["Command", "read_command"]
